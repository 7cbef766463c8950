"""Tests of watching transcripts for changes."""
