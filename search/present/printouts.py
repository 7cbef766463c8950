"""Printouts: what tools printed without failing, which is archived and in no index, looked through as it lies there.

A line is only ever shown as layer 3 reads it, if at length: without secrets, private spans and what was forgotten, and
as part of an exchange that is found like any other. What Palaver itself answered is no printout: who asks again would
find that.
"""

import re
from collections.abc import Iterator, Sequence
from time import monotonic

from msgspec import Struct

from ...archiver.copies.raw import RawArchive
from ...archiver.files.clipping import one_line
from ...archiver.redaction import placeholders_in
from ...archiver.store import Source, Store
from ...core.conversation import Turn
from ...core.errors import InvalidInput, SourceUnreadable
from ...core.query import Query
from ...core.recursion import without_recalled
from ...core.results import ToolOutputLine, ToolOutputMatches
from ..query.tokenizer import composed, verbatim
from ..rank.engine import Engine
from .transcript_reader import TranscriptReader

SECONDS = 2.0
"""How long it is looked for: copies of a gigabyte take as long."""
_MOST = 3
_BEFORE, _SHOWN = 60, 200
"""Characters that are shown before it, and in all."""
_BETWEEN, _ESCAPED = 24, 6
"""Bytes that may stand between two words of it in JSON: of blanks and line ends, and for each of its characters."""
_PLAIN = re.compile(r"[a-z0-9]+")
"""What stands in a line of JSON as it was said."""


class _Wanted(Struct, frozen=True):
    """What is looked for, until when: patterns of what was quoted, and of what the bytes of a line have of it."""

    query: Query
    patterns: tuple[re.Pattern[str], ...]
    words: tuple[bytes, ...]
    rows: tuple[re.Pattern[bytes], ...]
    until: float

    def may_stand(self, line: bytes) -> bool:
        """Whether a line has all the words, and those of each phrase one after the other."""
        small = line.lower()
        return all(word in small for word in self.words) and all(row.search(small) for row in self.rows)


class Printouts:
    """Looks for what was quoted in the archived copies, newest first."""

    def __init__(self, store: Store, raw: RawArchive, passages: TranscriptReader, engine: Engine) -> None:
        self._store, self._raw, self._passages, self._engine = store, raw, passages, engine

    def having(self, query: Query, phrases: Sequence[str], seconds: float = SECONDS) -> ToolOutputMatches:
        """The first places that have all these phrases and satisfy the filters; nothing that is searched has them.

        What stands in the place of a secret is not looked for: the copies have the secret itself.
        """
        words = {word for phrase in phrases for word in _words(phrase)}
        if query.filters.roles or not words or any(map(placeholders_in, phrases)):
            return ToolOutputMatches()
        patterns, rows = tuple(map(verbatim, phrases)), tuple(map(_row, phrases))
        wanted = _Wanted(query, patterns, tuple(words), rows, monotonic() + seconds)
        sources = sorted(self._store.sources.all(), key=lambda source: -source.mtime)
        places = list[ToolOutputLine]()
        for number, source in enumerate(sources):
            for line in self._lines(source, wanted):
                places += self._places(source, line, wanted)
                if len(places) >= _MOST:
                    return ToolOutputMatches(tuple(places[:_MOST]), searched=True)
            if monotonic() > wanted.until:  # perhaps in its midst
                return ToolOutputMatches(tuple(places), len(sources) - number, searched=True)
        return ToolOutputMatches(tuple(places), searched=True)

    def _lines(self, source: Source, wanted: _Wanted) -> Iterator[int]:
        """The lines of a copy that have all the words, as far as it can be read."""
        try:
            with self._raw.open(source.archived) as file:
                for number, line in enumerate(file, 1):
                    if wanted.may_stand(line):
                        yield number
                    if monotonic() > wanted.until:
                        return
        except (OSError, SourceUnreadable):
            return  # Layer 3 and the doctor tell of damage.

    def _places(self, source: Source, line: int, wanted: _Wanted) -> Iterator[ToolOutputLine]:
        """This line, where layer 3 shows what is looked for on it and the filters let its exchange through."""
        try:
            exchanges = self._passages.whole(source.archived, line)
        except (OSError, SourceUnreadable, InvalidInput):
            return
        for exchange in exchanges:
            stored = self._store.exchanges.at(source.id or 0, exchange.ordinal)
            span = stored.exchange.span if stored else None
            if stored is None or span is None or not span.start_line <= line <= span.end_line:
                continue
            others = {(turn.line, turn.call) for turn in stored.exchange.turns}
            texts = (_told(turn) for turn in exchange.turns if (turn.line, turn.call) in others)
            said = next((text for text in texts if all(each.search(text) for each in wanted.patterns)), "")
            if said and self._engine.allowed(wanted.query.filters, [stored.key]):
                yield ToolOutputLine(source.archived, line, _around(said, wanted.patterns[0]))
                return


def _told(turn: Turn) -> str:
    return composed(without_recalled(turn.text, shortened=False))


def _words(phrase: str) -> list[bytes]:
    return [word.encode() for word in _PLAIN.findall(phrase.lower())]


def _row(phrase: str) -> re.Pattern[bytes]:
    """The words of a phrase one after the other, with what JSON may make of the signs between them.

    Each is the next that there is, and no other is tried: what was taken for it stands no later than what is meant, and
    among words that come again and again, as zeros in a dump, there is no end of others.
    """
    within = _BETWEEN + _ESCAPED * len(phrase)
    first, *others = _words(phrase) or [b""]
    return re.compile(first + b"".join(b"(?>(?s:.{0,%d}?)%s)" % (within, word) for word in others))


def _around(said: str, pattern: re.Pattern[str]) -> str:
    found = pattern.search(said)
    start = max(0, (found.start() if found else 0) - _BEFORE)
    return "…" * bool(start) + one_line(said[start : start + 2 * _SHOWN], _SHOWN)
