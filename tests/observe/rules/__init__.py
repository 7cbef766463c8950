"""Do the rules tell it as it was?"""
