"""Is what we learned what was said?"""
