"""Is there any input at all that breaks what reads input first?"""
