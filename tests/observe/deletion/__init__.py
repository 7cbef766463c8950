"""Tests of observe/deletion."""
