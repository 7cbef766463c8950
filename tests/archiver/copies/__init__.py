"""Is archiver/copies true to its word?"""
