"""Does what is held stay true?"""
