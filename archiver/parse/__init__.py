"""What do lines say?"""
