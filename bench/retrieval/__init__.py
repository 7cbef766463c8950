"""Retrieval quality: development sets, three baselines and Palaver in one run."""
