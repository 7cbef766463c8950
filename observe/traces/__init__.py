"""Code traces: lines that agents wrote, from git blame and the archived edits."""

from .attribution import Certainty, WrittenFile
from .blame import UNCOMMITTED
from .code_traces import Attributed, CodeTraces, CommitShare
from .trace_record import Trace, TracedConversation, TracedFile

__all__ = [
    "UNCOMMITTED",
    "Attributed",
    "Certainty",
    "CodeTraces",
    "CommitShare",
    "Trace",
    "TracedConversation",
    "TracedFile",
    "WrittenFile",
]
