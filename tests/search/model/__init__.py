"""Tests of the packaged embedding model."""
