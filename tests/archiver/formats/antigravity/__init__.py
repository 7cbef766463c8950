"""Tests of the format of antigravity."""
