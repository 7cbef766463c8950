"""Reading of agents' files as numbered lines."""
