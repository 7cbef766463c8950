"""Traces: which lines of a file agents wrote, from git's blame and from what the archive knows about edits."""

from .attribution import Certainty, Written
from .blame import UNCOMMITTED
from .record import Conversation, Trace, TracedFile
from .traces import Attributed, CommitShare, Traces

__all__ = [
    "UNCOMMITTED",
    "Attributed",
    "Certainty",
    "CommitShare",
    "Conversation",
    "Trace",
    "TracedFile",
    "Traces",
    "Written",
]
