"""What must not come back?"""
