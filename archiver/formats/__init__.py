"""Transcript formats, one module per agent, and two for Claude Code.

Each module contains a format, which finds transcripts, and a reader, which converts their lines to events. The module
`transcript_format` defines the protocols, which are exported here. The module `registry` lists every format.
"""

from .transcript_format import (
    ContainedSession,
    ContainerFormat,
    Event,
    ExtractingFormat,
    FormatReader,
    TranscriptFormat,
    is_extracted,
)

__all__ = [
    "ContainedSession",
    "ContainerFormat",
    "Event",
    "ExtractingFormat",
    "FormatReader",
    "TranscriptFormat",
    "is_extracted",
]
