"""Speed of the real command line as ratios to bare work in the same run."""
