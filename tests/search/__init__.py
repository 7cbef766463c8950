"""Is the right thing found?"""
