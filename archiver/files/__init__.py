"""Opening of the files that agents write, as numbered lines."""
