"""Theo toolset: memories, a graph of them, documents, and code traces."""

from .theo_toolset import THEO

__all__ = ["THEO"]
