"""The format of opencode."""
