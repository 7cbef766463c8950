"""Code traces: the lines that agents wrote, determined from git blame and the archived edits."""

from .attribution import Certainty
from .code_traces import Attributed, CodeTraces, CommitShare

__all__ = ["Attributed", "Certainty", "CodeTraces", "CommitShare"]
