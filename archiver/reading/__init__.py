"""Reading of one raw copy: its new exchanges, and an outcome for each line."""
