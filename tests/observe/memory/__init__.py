"""Tests of memories."""
