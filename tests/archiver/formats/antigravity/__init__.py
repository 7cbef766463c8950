"""Tests of the format of Antigravity."""
