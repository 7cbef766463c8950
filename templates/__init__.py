"""Presentation: render objects of `core` as Markdown for agents and users, and as JSON."""
