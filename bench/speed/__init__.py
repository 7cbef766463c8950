"""Speed of the command line, compared with baselines in the same run."""
