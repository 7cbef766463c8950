"""What must go, and is it gone?"""
