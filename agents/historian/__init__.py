"""The Historian surface: memories as Markdown files in the project."""

from .toolset import HISTORIAN

__all__ = ["HISTORIAN"]
