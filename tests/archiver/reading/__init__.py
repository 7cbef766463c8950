"""Tests of reading one raw copy."""
