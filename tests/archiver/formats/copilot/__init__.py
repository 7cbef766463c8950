"""Tests of the format of GitHub Copilot CLI."""
