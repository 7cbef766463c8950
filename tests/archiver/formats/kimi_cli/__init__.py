"""Tests of the format of kimi_cli."""
