"""Where is it?"""
