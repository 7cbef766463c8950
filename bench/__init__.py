"""Benchmarks of retrieval quality, speed and memory. They measure and print; they are not tests."""
