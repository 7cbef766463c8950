"""When is something new?"""
