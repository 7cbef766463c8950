"""The format of claude_ai."""
