"""Tests of the format of Claude Code."""
