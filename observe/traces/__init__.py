"""Code traces: the lines that agents wrote, determined from git blame and the archived edits."""

from .attribution import Attributed, Certainty, CodeTraces, CommitShare, FileBlame

__all__ = ["Attributed", "Certainty", "CodeTraces", "CommitShare", "FileBlame"]
