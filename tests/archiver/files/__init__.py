"""Tests of opening files as lines."""
