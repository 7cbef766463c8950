"""Is archiver/parse true to its word?"""
