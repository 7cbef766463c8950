"""Rag toolset: memories by category and context level, and semantic code search."""

from .rag_memory_tools import RagContext
from .rag_toolset import RAG

__all__ = ["RAG", "RagContext"]
