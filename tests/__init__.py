"""Is it true?"""
