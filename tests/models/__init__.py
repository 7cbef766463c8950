"""Tests of the extra `models`."""
