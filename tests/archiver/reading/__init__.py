"""Is archiver/reading true to its word?"""
