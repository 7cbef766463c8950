"""Tests of `search/index/`."""
