"""Is archiver/files true to its word?"""
