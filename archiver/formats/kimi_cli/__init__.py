"""The format of kimi_cli."""
