"""Is archiver/privacy true to its word?"""
