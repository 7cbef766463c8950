"""Watching of transcripts while agents write them."""
