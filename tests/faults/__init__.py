"""Does everything that was acknowledged survive whatever happens?"""
