"""Does every agent get the answer it was promised?"""
