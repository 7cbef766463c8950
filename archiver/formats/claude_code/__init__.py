"""The format of claude_code."""
