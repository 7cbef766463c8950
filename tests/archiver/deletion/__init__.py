"""Is archiver/forget true to its word?"""
