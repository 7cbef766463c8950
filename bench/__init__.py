"""Benchmarks: how well Palaver finds, and how fast. Not tests: they measure, and print tables."""
