"""Search for a literal text in the output of tool calls, which is archived but not indexed.

The search reads the raw copies of transcripts, newest first, until it has enough matches or reaches the time limit. A
match counts only if `TranscriptReader` shows its text and its exchange satisfies the filters. Secrets, private spans,
deleted text and Palaver's own replies are therefore never returned.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, partial
from importlib import import_module
from itertools import groupby
from time import monotonic
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.copies.raw_copy import RawArchive
from ...archiver.lines import JOINED_LINES, one_line
from ...archiver.redaction import placeholders_in
from ...archiver.redaction.scanner import Re2Pattern
from ...archiver.store import Source, Store
from ...core import ids
from ...core.conversation import Kind, Milliseconds, Session, Turn
from ...core.errors import InvalidInput, InvalidLimit, SourceUnreadable
from ...core.home import without_recalled
from ...core.query import CONTEXT_MAX, LIMIT_MAX, Filters
from ...core.results import OutputMatch, OutputMatches
from ..query.tokenizer import composed
from .details import SessionNames
from .transcript_reader import TranscriptReader

_BEFORE, _SHOWN = 60, 200
"""Maximum number of characters to show before a match, and of each line."""
_TOGETHER = 500
"""Maximum number of lines to read at once."""
_WORDS_MAX = 20
"""Maximum number of words whose order in a raw line is checked."""
_SEPARATOR = (
    r"(?:[^a-z]|\\+(?:[bfnrt]|u[0-9a-f]{4})|\[[0-9;]*m"
    r'|\\*"(?:content|input_text|output|output_text|text|type)\\*")*'
)
"""Pattern for what can separate two words in a raw line: escapes, colours, and the border of two JSON strings."""
_ASCII = re.compile(r"[a-z0-9]+")
"""Pattern for characters that JSON encoders do not escape."""
_WORD = re.compile(r"\w+")


Allowed: TypeAlias = Callable[[Filters, Sequence[int]], AbstractSet[int]]
"""Function that returns those of the exchanges that satisfy the filters."""


class _Search(Struct, frozen=True):
    """Search for one text: its pattern, what a raw line must contain, and the time at which the search ends.

    Each word has one or two encodings. A raw line must contain an encoding of every word, and a match of `raw_pattern`.
    This excludes the lines that contain the words apart, which would be parsed in vain.
    """

    pattern: re.Pattern[str]
    words: tuple[tuple[bytes, ...], ...]
    raw_pattern: Re2Pattern | None
    context: int
    until: float


class OutputSearch:
    """Search in the archived output of tool calls."""

    def __init__(self, store: Store, raw: RawArchive, reader: TranscriptReader, allowed: Allowed) -> None:
        """Prepare searches. `allowed` is called only for a search with filters, because it opens the index."""
        self._store, self._raw, self._reader, self._allowed = store, raw, reader, allowed

    def find(self, text: str, filters: Filters, *, limit: int, context: int, seconds: float) -> OutputMatches:
        """See `SearchIndex.find_output`. A secret in the text is already replaced with its placeholder."""
        _check(text, filters, limit, context)
        search = _Search(_pattern(text), _words(text), _raw_pattern(text), context, monotonic() + seconds)
        sources = self._newest_first()
        matches: list[OutputMatch] = []
        for number, (latest, source) in enumerate(sources):
            part = OutputMatches(text, searched=number, unread=len(sources) - number, back_to=latest)
            for match in self._in_source(source, filters, search):
                matches.append(match)
                if len(matches) == limit:
                    return replace(part, matches=tuple(matches), limited=True)
            if monotonic() > search.until:
                return replace(part, matches=tuple(matches))
        return OutputMatches(text, tuple(matches), searched=len(sources))

    def _newest_first(self) -> list[tuple[Milliseconds, Source]]:
        """Return the source files, each with the time of the last line of its session, newest first."""
        sessions = self._store.sessions.all()

        def latest(source: Source) -> Milliseconds:
            session = sessions.get(source.session or 0)
            at = (session.ended or session.started) if session else None
            return source.mtime // 1_000_000 if at is None else at

        dated = [(latest(source), source) for source in self._store.sources.all() if source.session is not None]
        return sorted(dated, key=lambda pair: (pair[0], pair[1].mtime), reverse=True)

    def _in_source(self, source: Source, filters: Filters, search: _Search) -> Iterator[OutputMatch]:
        """Yield the matches in one source file, from exchanges that satisfy the filters."""
        if source.session is None:
            return
        every = self._store.exchanges.in_source(source.id or 0)
        keys = self._allowed(filters, every) if filters else set(every)
        if not keys:
            return
        session = cache(partial(self._session, source.session))
        exchange_of = cache(partial(self._lines_with_output, keys))
        lines = (line for line in self._candidates(source, search) if line in exchange_of())
        # To read a line, the lines before it are parsed, so neighbouring lines of an exchange are read together.
        for _, together in groupby(lines, lambda line: (exchange_of()[line], line // _TOGETHER)):
            for key, turn in self._outputs(source, list(together)):
                if key in keys and (match := _match(turn, key, source, session(), search)):
                    yield match

    def _session(self, number: int) -> Session:
        return replace(self._store.sessions.load(number), title=SessionNames(self._store).title(number))

    def _candidates(self, source: Source, search: _Search) -> Iterator[int]:
        """Yield the 1-based first lines of records that contain all words. Stop at a read error or the time limit."""
        try:
            with self._raw.open(source.archived) as file:
                for number, record in _records(file):
                    small = record.lower()
                    if all(any(spelling in small for spelling in word) for word in search.words) and (
                        search.raw_pattern is None or search.raw_pattern.search(small)
                    ):
                        yield number
                    if monotonic() > search.until:
                        return
        except (OSError, SourceUnreadable):
            return  # layer 3 and `palaver doctor` report damage

    def _lines_with_output(self, keys: Iterable[int]) -> dict[int, int]:
        """Map the 1-based number of each line with tool output to its exchange. All `keys` are of one source file."""
        stored = self._store.exchanges.load(list(keys)).values()
        return {
            turn.line: exchange.key
            for exchange in stored
            for turn in exchange.exchange.turns
            if turn.kind is Kind.RESULT
        }

    def _outputs(self, source: Source, lines: Sequence[int]) -> Iterator[tuple[int, Turn]]:
        """Yield the tool outputs that `TranscriptReader` shows on these lines, as (exchange key, output) pairs."""
        try:
            exchanges = self._reader.whole(source.archived, lines[0], lines[-1])
        except (OSError, SourceUnreadable, InvalidInput):
            return
        for exchange in exchanges:
            stored = self._store.exchanges.at(source.id or 0, exchange.ordinal)
            if stored is None:
                continue
            calls = {(turn.line, turn.call) for turn in stored.exchange.turns}
            for turn in exchange.turns:
                if turn.kind is Kind.RESULT and turn.line in lines and (turn.line, turn.call) in calls:
                    yield stored.key, turn


def _records(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield each record with the 1-based number of its first line. Lines that begin no record continue the last one."""
    parts, first = list[bytes](), 1
    for number, line in enumerate(lines, 1):
        if parts and (line.startswith(b"{") or len(parts) == JOINED_LINES):
            yield first, parts[0] if len(parts) == 1 else b"".join(parts)
            parts, first = [], number
        parts.append(line)
    if parts:
        yield first, b"".join(parts)


def _check(text: str, filters: Filters, limit: int, context: int) -> None:
    """Raise `InvalidInput` if an argument is invalid, or if the filters include roles."""
    if placeholders_in(text):
        raise InvalidInput(
            "The text contains a secret, which the archive redacts", hint="Search for words near the secret."
        )
    if not _WORD.search(text):
        raise InvalidInput("The text has no letter or digit", hint="Add a word of the output.")
    if filters.roles:
        raise InvalidInput("A role filter does not apply to tool output", hint="Remove the role filter.")
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidLimit(limit)
    if not 0 <= context <= CONTEXT_MAX:
        raise InvalidInput(f"Invalid number of context lines: {context}. Give 0 to {CONTEXT_MAX}")


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(r"\s+".join(map(re.escape, composed(text).split())), re.IGNORECASE)


def _words(text: str) -> tuple[tuple[bytes, ...], ...]:
    """Return the words that a raw line must contain if it contains the text, each in its possible encodings.

    Only ASCII words are used if the text has any. Other words occur in raw lines either in UTF-8 or JSON-escaped.
    """
    if words := set(_ASCII.findall(text.lower())):
        return tuple((word.encode(),) for word in words)
    return tuple((word.encode(), json.dumps(word)[1:-1].encode()) for word in set(_WORD.findall(text)))


def _raw_pattern(text: str) -> Re2Pattern | None:
    """Return a pattern of the ASCII words in their order, with nothing between them but separators of a raw line.

    It is None for fewer than two ASCII words.
    """
    words = _ASCII.findall(text.lower())[:_WORDS_MAX]
    if len(words) < 2:
        return None
    re2 = import_module("re2")  # Its time is linear even on a megabyte of zeros.
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    made: Re2Pattern = re2.compile(_SEPARATOR.join(words).encode(), options)
    return made


def _match(turn: Turn, key: int, source: Source, session: Session, search: _Search) -> OutputMatch | None:
    """Return the first match in an output with its surrounding lines, or None."""
    text = composed(without_recalled(turn.text, shortened=False))
    first = search.pattern.search(text)
    if first is None:
        return None
    before, after = text[: first.start()].split("\n"), text[first.start() :].split("\n")
    line = before.pop()
    start = max(0, len(line) - _BEFORE)
    return OutputMatch(
        id=ids.show("exchange", key),
        project=session.project,
        at=turn.at,
        session_id=session.native_id,
        session_title=session.title,
        path=source.archived,
        line=turn.line,
        before=_shortened(before[max(0, len(before) - search.context) :]),
        text=one_line("…" * bool(start) + line[start:] + after[0][: 2 * _SHOWN], _SHOWN),
        after=_shortened(after[1 : 1 + search.context]),
        more=sum(1 for _ in search.pattern.finditer(text, first.end())),
    )


def _shortened(rows: Sequence[str]) -> tuple[str, ...]:
    """Return the lines with their indentation, each shortened to `_SHOWN` characters."""
    return tuple(row.rstrip() if len(row) <= _SHOWN else f"{row[: _SHOWN - 1]}…" for row in rows)
