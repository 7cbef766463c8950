"""Tests of background archiving and indexing."""
