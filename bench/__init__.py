"""Benchmarks of retrieval quality, speed and memory. They measure and print, and never fail on a bad number."""
