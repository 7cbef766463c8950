"""Does the store keep what it was given?"""
