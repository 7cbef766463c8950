"""Tests of the transcript formats."""
