"""Is every line that was said kept and accounted for?"""
