"""Presentation: objects of `core` are rendered as Markdown for agents and users, and as JSON."""
