"""The format of copilot."""
