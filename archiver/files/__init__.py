"""Agent files, read as numbered lines."""
