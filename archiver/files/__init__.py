"""How are the files that agents write opened as numbered lines?"""
