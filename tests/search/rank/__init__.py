"""Tests of `search/rank/`."""
