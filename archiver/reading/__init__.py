"""Which exchanges are new in a source, and what happens to each of its lines?"""
