"""Tests of the format of Claude.ai."""
