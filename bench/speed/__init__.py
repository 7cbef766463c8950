"""How fast is it? The real command line, as ratios to bare work measured in the same run."""
