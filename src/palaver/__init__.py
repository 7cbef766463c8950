"""Every conversation you have with coding agents, archived, understood and found again."""

__version__ = "0.1.0"
