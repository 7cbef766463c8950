"""How well is it found? Development sets, three honest baselines and Palaver, in one run."""
