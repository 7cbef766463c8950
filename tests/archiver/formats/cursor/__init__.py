"""Tests of the format of Cursor."""
