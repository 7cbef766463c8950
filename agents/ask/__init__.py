"""Answers to questions about past conversations, with citations that are checked against the archive."""
