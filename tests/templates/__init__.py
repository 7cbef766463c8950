"""Does it look as it should?"""
