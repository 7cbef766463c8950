"""Tests of memories in files."""
