"""Ingest of transcripts while agents write them."""
