"""Is the packaged model what it should be?"""
