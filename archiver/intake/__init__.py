"""What is new, and who takes it up?"""
