"""Tests of the pages of a session."""
