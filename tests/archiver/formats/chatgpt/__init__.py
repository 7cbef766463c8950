"""Tests of the format of chatgpt."""
