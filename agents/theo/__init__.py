"""The Theo surface: documents, memories that earn their confidence, and who wrote which line."""

from .toolset import THEO

__all__ = ["THEO"]
