"""What was said?"""
