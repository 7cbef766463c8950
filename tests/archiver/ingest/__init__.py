"""Tests of the ingest of transcripts."""
