"""Ingest of transcripts into the archive."""
