"""Search for quoted phrases in the output of successful tool calls. This output is archived but not indexed.

The search reads raw copies, newest first. A match counts only if layer 3 shows the text and the exchange satisfies the
filters. Secrets, private spans, deleted text and Palaver's own replies are therefore never returned.
"""

import re
from collections.abc import Iterator, Sequence
from time import monotonic

from msgspec import Struct

from ...archiver.copies.raw import RawArchive
from ...archiver.files.clipping import one_line
from ...archiver.redaction import placeholders_in
from ...archiver.store import Source, Store
from ...core.errors import InvalidInput, SourceUnreadable
from ...core.query import Query
from ...core.recursion import without_recalled
from ...core.results import ToolOutputLine, ToolOutputMatches
from ..query.tokenizer import composed, literal_pattern
from ..rank.engine import Engine
from .transcript_reader import TranscriptReader

SECONDS = 2.0
"""Default time limit of a search in seconds. This suffices to read a gigabyte of copies."""
_MOST = 3
_BEFORE, _SHOWN = 60, 200
"""Maximum number of characters before a match, and of the whole excerpt."""
_PLAIN = re.compile(r"[a-z0-9]+")
"""Characters that JSON does not escape."""


class _Search(Struct, frozen=True):
    query: Query
    patterns: tuple[re.Pattern[str], ...]
    words: frozenset[bytes]
    until: float


class OutputSearch:
    """Search in the archived output of tool calls."""

    def __init__(self, store: Store, raw: RawArchive, reader: TranscriptReader, engine: Engine) -> None:
        self._store, self._raw, self._reader, self._engine = store, raw, reader, engine

    def find(self, query: Query, phrases: Sequence[str], seconds: float = SECONDS) -> ToolOutputMatches:
        """Return the first archived lines that contain all phrases and satisfy the filters of the query.

        Phrases with a redaction placeholder are not searched, because the raw copies contain the secret itself.

        Args:
            query: The query, whose filters apply.
            phrases: Phrases that a line must contain.
            seconds: Time limit.
        """
        words = frozenset(word.encode() for phrase in phrases for word in _PLAIN.findall(phrase.lower()))
        if query.filters.roles or not words or any(map(placeholders_in, phrases)):
            return ToolOutputMatches()
        search = _Search(query, tuple(map(literal_pattern, phrases)), words, monotonic() + seconds)
        sources = sorted(self._store.sources.all(), key=lambda source: -source.mtime)
        found = list[ToolOutputLine]()
        for number, source in enumerate(sources):
            for line in self._candidates(source, search):
                found += self._match(source, line, search)
                if len(found) >= _MOST:
                    return ToolOutputMatches(tuple(found[:_MOST]), searched=True)
            if monotonic() > search.until:
                return ToolOutputMatches(tuple(found), len(sources) - number, searched=True)
        return ToolOutputMatches(tuple(found), searched=True)

    def _candidates(self, source: Source, search: _Search) -> Iterator[int]:
        """Yield the 1-based numbers of lines that contain all words. Stop at a read error or at the time limit."""
        try:
            with self._raw.open(source.archived) as file:
                for number, line in enumerate(file, 1):
                    small = line.lower()
                    if all(word in small for word in search.words):
                        yield number
                    if monotonic() > search.until:
                        return
        except (OSError, SourceUnreadable):
            return  # layer 3 and `palaver doctor` report damage

    def _match(self, source: Source, line: int, search: _Search) -> Iterator[ToolOutputLine]:
        """Yield this line if layer 3 shows all phrases on it and its exchange satisfies the filters."""
        try:
            exchanges = self._reader.whole(source.archived, line)
        except (OSError, SourceUnreadable, InvalidInput):
            return
        for exchange in exchanges:
            stored = self._store.exchanges.at(source.id or 0, exchange.ordinal)
            if stored is None or not stored.exchange.span.start_line <= line <= stored.exchange.span.end_line:
                continue
            known = {(turn.line, turn.call) for turn in stored.exchange.turns}
            turns = (turn for turn in exchange.turns if (turn.line, turn.call) in known)
            texts = (composed(without_recalled(turn.text, shortened=False)) for turn in turns)
            text = next((text for text in texts if all(each.search(text) for each in search.patterns)), "")
            if text and self._engine.snapshot.allowed(search.query.filters, [stored.key]):
                yield ToolOutputLine(source.archived, line, _excerpt(text, search.patterns[0]))
                return


def _excerpt(text: str, pattern: re.Pattern[str]) -> str:
    found = pattern.search(text)
    start = max(0, (found.start() if found else 0) - _BEFORE)
    return "…" * bool(start) + one_line(text[start : start + 2 * _SHOWN], _SHOWN)
