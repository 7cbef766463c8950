"""Tests of reading raw copies."""
