"""What do all of us mean by an id, a line range, a setting, an error?"""
