"""Is archiver/ingest true to its word?"""
