"""Tests of the format of Codex."""
