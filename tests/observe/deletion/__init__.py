"""Is observe/forget true to its word?"""
