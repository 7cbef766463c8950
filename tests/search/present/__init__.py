"""Tests of `search/present/`."""
