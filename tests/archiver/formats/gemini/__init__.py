"""Tests of the format of gemini."""
