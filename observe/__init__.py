"""Extraction of observations, storage of memories, and background work."""
