"""Is observe/upkeep true to its word?"""
