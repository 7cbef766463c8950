"""Tests of the format of opencode."""
