"""Fuzz tests of the readers of input."""
