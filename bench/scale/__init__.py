"""Benchmark of ingest, indexing and search in synthetic archives of 10,000 to 1,000,000 items."""
