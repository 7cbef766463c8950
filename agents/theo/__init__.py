"""Theo toolset: memories and their graph, documents, and code traces."""

from .theo_toolset import THEO

__all__ = ["THEO"]
