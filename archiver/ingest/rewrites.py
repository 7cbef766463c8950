"""Comparison of two states of a conversation that its agent writes anew as a whole."""

from collections.abc import Iterator
from typing import BinaryIO

from ...core.conversation import Session, Turn
from ..files.lines import split
from ..formats import TranscriptFormat


def loses_nothing(known: TranscriptFormat, session: Session, before: BinaryIO, after: BinaryIO) -> bool:
    """Return whether `after` has every turn of `before`, in the same order; a turn may have become longer."""
    later = _turns(known, session, after)
    return all(any(_continues(new, old) for new in later) for old in _turns(known, session, before))


def _turns(known: TranscriptFormat, session: Session, file: BinaryIO) -> Iterator[Turn]:
    events = known.reader(session, shorten=False).read(split(file))
    return (event for event in events if isinstance(event, Turn))


def _continues(new: Turn, old: Turn) -> bool:
    return (new.speaker, new.kind) == (old.speaker, old.kind) and new.text.startswith(old.text)
