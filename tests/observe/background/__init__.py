"""Is observe/background true to its word?"""
