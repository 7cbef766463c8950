"""Observations extracted from conversations, memories, and the work in the background."""
