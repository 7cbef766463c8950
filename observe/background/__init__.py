"""What runs while nobody waits for it?"""
