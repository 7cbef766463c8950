"""Is archiver/watch true to its word?"""
