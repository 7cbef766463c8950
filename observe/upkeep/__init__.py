"""Is everything well, and how is it made so?"""
