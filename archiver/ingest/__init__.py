"""Ingest of transcripts: finding, copying, parsing and storing them."""
