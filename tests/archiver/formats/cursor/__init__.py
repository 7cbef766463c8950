"""Tests of the format of cursor."""
