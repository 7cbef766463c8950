"""Hooks: answers to the events of a coding agent's session, with text from the archive."""
