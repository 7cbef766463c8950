"""Tests of deletion, undo and erasure."""
