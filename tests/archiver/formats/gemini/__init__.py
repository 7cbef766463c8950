"""Tests of the format of Gemini CLI."""
