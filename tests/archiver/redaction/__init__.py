"""Tests of what is taken for a secret, and of what stands in its place."""
