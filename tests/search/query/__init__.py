"""Tests of `search/query/`."""
