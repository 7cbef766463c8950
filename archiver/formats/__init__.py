"""Transcript formats, one package per agent.

Each package has a format, which finds transcripts, and a reader, which turns their lines into events.

`transcript_format` contains the protocols, which are exported here. `registry` lists every format.
"""

from .transcript_format import ContainedSession, ContainerFormat, Event, FormatReader, TranscriptFormat

__all__ = ["ContainedSession", "ContainerFormat", "Event", "FormatReader", "TranscriptFormat"]
