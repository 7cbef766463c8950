"""Tests of `agents/`."""
