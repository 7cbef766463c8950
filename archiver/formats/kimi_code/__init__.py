"""The format of kimi_code."""
