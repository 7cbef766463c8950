"""Transcript formats: one package per agent, each with a format that finds transcripts and a reader of their lines.

`transcript_format` holds the protocols, exported here; `registry` lists every format.
"""

from .transcript_format import ContainedSession, ContainerFormat, Event, FormatReader, TranscriptFormat

__all__ = ["ContainedSession", "ContainerFormat", "Event", "FormatReader", "TranscriptFormat"]
