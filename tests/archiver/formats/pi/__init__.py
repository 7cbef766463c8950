"""Tests of the format of pi."""
