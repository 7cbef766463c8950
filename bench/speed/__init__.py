"""Benchmark of the speed of the command line, compared with baselines in the same run."""
