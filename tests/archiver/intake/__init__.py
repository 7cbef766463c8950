"""Is archiver/intake true to its word?"""
