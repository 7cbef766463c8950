"""Benchmark of retrieval quality: development sets, three baselines and Palaver in one run."""
