"""Tests of the format of Kimi Code."""
