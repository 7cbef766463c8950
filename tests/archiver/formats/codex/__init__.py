"""Tests of the format of codex."""
