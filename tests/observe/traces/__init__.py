"""Who wrote which line?"""
