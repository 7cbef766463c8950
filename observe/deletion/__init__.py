"""Deletion of exchanges, memories and memory files, with preview, undo and verification."""
