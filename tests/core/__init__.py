"""Do all of us mean the same thing?"""
