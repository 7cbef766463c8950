"""Deletion as users ask for it: exchanges, memories and memory files together, with preview, undo and verification."""
