"""Tests of `observe/`."""
