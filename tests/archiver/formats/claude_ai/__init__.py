"""Tests of the format of claude_ai."""
