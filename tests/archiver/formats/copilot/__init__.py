"""Tests of the format of copilot."""
