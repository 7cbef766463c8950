"""The format of pi."""
