"""The format of antigravity."""
