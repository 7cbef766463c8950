"""Tests of the format of ChatGPT."""
