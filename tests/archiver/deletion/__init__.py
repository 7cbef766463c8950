"""Tests of archiver/deletion."""
