"""Opening of agent files as numbered lines."""
