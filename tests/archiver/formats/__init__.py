"""Is each agent's way of writing read in full?"""
