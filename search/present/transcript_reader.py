"""Third level of search results: lines of an archived transcript, parsed as a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import groupby, takewhile
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.copies.exporter import Exporter, encodable
from ...archiver.copies.raw_copy import RawArchive
from ...archiver.deletion.suppression import SuppressionList
from ...archiver.formats.registry import by_agent
from ...archiver.lines import Line, split
from ...archiver.reading.exchanges import group_exchanges, link_late_results
from ...archiver.reading.parsing import RepetitionFilter, is_excluded
from ...archiver.redaction import Redactor
from ...archiver.redaction.redactor import TranscriptRedactor
from ...archiver.store import Source, Store
from ...archiver.store.exchange_table import ExchangeStart
from ...archiver.store.session_table import SHORTEST_ID, ambiguous_session, similar_sessions
from ...archiver.store.source_table import DELETED
from ...core import tokens
from ...core.conversation import UNINDEXED, Exchange, Fact, Kind, Session, Turn
from ...core.errors import CopyGone, InvalidInput, InvalidLineRange, PathOutsideArchive
from ...core.results import COUNTED, EXCERPT_BUDGET, Part, TranscriptExcerpt, read_cost
from .details import SessionNames
from .subagents import Subagents

_LEAD = 100
"""Maximum number of lines before the first requested line that are parsed as its context."""


class _Excerpt(Struct, frozen=True):
    """Requested lines of a source.

    Attributes:
        start: First requested line.
        last: Last requested line.
        parse_start: Position at which parsing starts.
        rewound: Lines that the user discarded by a rewind.
    """

    source: Source
    start: int
    last: int
    parse_start: ExchangeStart
    rewound: frozenset[int]


class _RequestedLines:
    """Lines of a copy up to the line `last`.

    `start` is the first requested line or, if a record that begins earlier continues on it, the first line of the
    record.
    """

    def __init__(self, lines: Iterator[Line], start: int, last: int) -> None:
        self._lines, self._last, self.start = lines, last, start

    def __iter__(self) -> Iterator[Line]:
        for line in takewhile(lambda line: line.number <= self._last, self._lines):
            if self.start in line.numbers:
                self.start = line.number
            yield line


class TranscriptReader:
    """Reader of archived transcripts by path and lines. Rejects paths outside the archive."""

    def __init__(self, store: Store, raw: RawArchive, redactor: Redactor, suppression: SuppressionList) -> None:
        self._store, self._raw = store, raw
        self._redactor, self._suppression = TranscriptRedactor(redactor), suppression

    def read(self, path: str, start: int, end: int | None, budget: int = 0) -> TranscriptExcerpt:
        """Return the conversation on these lines. Line numbers are 1-based and inclusive.

        Without `end`, the excerpt extends to the last line. Long tool inputs and results are shortened unless the whole
        excerpt fits the token budget, which is `EXCERPT_BUDGET` or a larger `budget`. In a truncated
        excerpt, `next_line` is the first omitted line.

        Raises:
            PathOutsideArchive, InvalidLineRange, CopyGone: The path or lines do not exist.
        """
        budget = max(budget, EXCERPT_BUDGET)
        source, last = self._range(path, start, end)
        session = self._session(source)
        is_indexed = UNINDEXED not in session.links
        excerpt = self._excerpt(source, start, last)
        exchanges = list(self._exchanges(excerpt, session, shorten=False)) if is_indexed else []
        if exceed_budget(exchanges, budget):
            exchanges = list(self._exchanges(excerpt, session, shorten=True))
        stored = partial(self._store.exchanges.calls_before, source.id, start)
        exchanges = link_late_results(self._redactor.exchanges(exchanges), stored)
        exchanges, next_line = within_budget(exchanges, budget)
        end_line = next_line - 1 if next_line else last
        costs = self._store.exchanges.costs_in(source.id or 0, start, last) if is_indexed else []
        return TranscriptExcerpt(
            path=source.archived,
            session_id=session.native_id,
            kind=session.kind,
            parent_id=session.parent_id,
            agent=session.agent,
            project=session.project,
            cwd=session.cwd,
            branch=", ".join(dict.fromkeys(exchange.branch for exchange in exchanges if exchange.branch))
            or session.branch,
            version=session.version,
            title=SessionNames(self._store).title(source.session) if source.session else session.title,
            pull_request=session.links.get(Fact.PULL_REQUEST, ""),
            started=session.started,
            start_line=start,
            end_line=end_line,
            total_lines=source.lines,
            exchanges=tuple(exchanges),
            tokens=_tokens(exchanges),
            next_line=next_line,
            also_in=self._store.repetitions.on_lines(source.id or 0, start, end_line) if is_indexed else (),
            subagents=Subagents(self._store).of_calls(source, session, exchanges),
            stated_tokens=read_cost(costs, single=start == last),
            is_deleted=not exchanges and not self._deleted_lines(excerpt).isdisjoint(range(start, last + 1)),
        )

    def read_parts(self, parts: Iterable[Part], budget: int = 0) -> list[TranscriptExcerpt]:
        """Return an excerpt for each of the first parts that fit the token budget together, at least for the first."""
        excerpts, left = list[TranscriptExcerpt](), budget or EXCERPT_BUDGET
        for part in parts:
            excerpt = self.read(*part, budget)
            left -= excerpt.tokens
            if excerpts and (left < 0 or excerpts[-1].next_line):
                break
            excerpts.append(excerpt)
        return excerpts

    def whole(self, path: str, start: int, end: int) -> list[Exchange]:
        """Return the exchanges on these lines without shortening. Raises the same errors as `read`."""
        source, last = self._range(path, start, end)
        session = self._session(source)
        if UNINDEXED in session.links:
            return []
        excerpt = self._excerpt(source, start, last)
        return self._redactor.exchanges(list(self._exchanges(excerpt, session, shorten=False)))

    def raw(self, path: str, start: int, end: int | None) -> Iterator[bytes]:
        """Return the raw lines with their line ends. Deleted lines are left out. Raises the same errors as `read`."""
        source, last = self._range(path, start, end)
        exchange_start = self._store.exchanges.start_before(source.id or 0, start)
        rows = self._raw.lines(source.archived, start, last, (exchange_start.start_line, exchange_start.start_byte))
        deleted = self._deleted_lines(self._excerpt(source, start, last))
        return (row for number, row in enumerate(rows, start) if number not in deleted) if deleted else rows

    def deleted_lines(self, path: str, start: int, end: int | None) -> set[int]:
        """Return the numbers of the deleted lines among these lines. Raises the same errors as `read`."""
        source, last = self._range(path, start, end)
        return {line for line in self._deleted_lines(self._excerpt(source, start, last)) if start <= line <= last}

    def _deleted_lines(self, excerpt: _Excerpt) -> set[int]:
        """Return the numbers of the deleted lines within an excerpt."""
        if not self._suppression:
            return set()
        source, begin = excerpt.source, excerpt.parse_start
        with self._raw.open(source.archived) as file:
            lines = split(file, start_byte=begin.start_byte, start_line=begin.start_line)
            deleted = self._suppression.lines(source.path, takewhile(lambda line: line.number <= excerpt.last, lines))
        with self._raw.open(source.archived) as file:
            lines = split(file, start_byte=begin.start_byte, start_line=begin.start_line)
            reader = by_agent(source.agent).reader(self._session(source))
            read = reader.read(takewhile(lambda line: line.number <= excerpt.last, lines))
            turns = [event for event in read if isinstance(event, Turn) and event.record]
        records = {turn.record: turn.line for turn in turns}
        gone = self._suppression.records(records)
        return deleted | {turn.line for turn in turns if records[turn.record] in gone}

    def _session(self, source: Source) -> Session:
        return self._store.sessions.load(source.session) if source.session is not None else Session(source.agent, "")

    def _range(self, path: str, start: int, end: int | None) -> tuple[Source, int]:
        """Return the source with this path, and the number of the last requested line.

        Raises:
            PathOutsideArchive, InvalidLineRange, CopyGone: The path or lines do not exist.
        """
        if start < 1:
            raise InvalidLineRange("startLine must be ≥1")
        if end is not None and end < start:
            raise InvalidLineRange("endLine must be ≥startLine")
        source = self._store.sources.by_archived(self._raw.archive_path(path))
        if source is None or source.coverage.keys() == {DELETED}:
            raise PathOutsideArchive(path)
        try:
            self._raw.resolve(path)
        except PathOutsideArchive:
            raise CopyGone(self._raw.root / source.archived) from None
        if start > max(1, source.lines):
            raise InvalidLineRange(f"line {start} is past the last line, which is {source.lines}")
        return source, min(end or source.lines, source.lines)

    def _exchanges(self, excerpt: _Excerpt, session: Session, *, shorten: bool) -> Iterator[Exchange]:
        """Yield the exchanges on these lines without deleted turns."""
        deleted = self._deleted_lines(excerpt)
        for exchange in self._parsed(excerpt, session, shorten=shorten):
            turns = tuple(turn for turn in exchange.turns if turn.line not in deleted) if deleted else exchange.turns
            if turns:
                yield replace(exchange, turns=turns)

    def _parsed(self, excerpt: _Excerpt, session: Session, *, shorten: bool) -> Iterator[Exchange]:
        """Yield the exchanges on these lines, each with only the turns on these lines.

        The store states which turns were rewound, because a rewind may appear much later in the transcript.
        """
        source, begin = excerpt.source, excerpt.parse_start
        whole = by_agent(source.agent).reader(session, shorten=shorten)
        reader = RepetitionFilter(whole, {}, first_line=excerpt.start)
        with self._raw.open(source.archived) as file:
            lines = split(file, start_byte=begin.start_byte, start_line=begin.start_line)
            wanted = _RequestedLines(lines, excerpt.start, excerpt.last)
            for event in group_exchanges(reader, wanted, first_ordinal=begin.ordinal):
                if isinstance(event, Exchange) and not is_excluded(event):
                    requested = (turn for turn in event.turns if wanted.start <= turn.line <= excerpt.last)
                    turns = tuple(
                        turn._replace(active=False) if turn.line in excerpt.rewound else turn for turn in requested
                    )
                    placed = self._placed(excerpt, replace(event, turns=turns)) if turns else None
                    if placed and (turns := self._without_sent_later(excerpt, placed)):
                        yield replace(placed, turns=turns)

    def _without_sent_later(self, excerpt: _Excerpt, exchange: Exchange) -> tuple[Turn, ...]:
        """Return the turns of an exchange without queued prompts that open a later exchange.

        The store states which prompts these are, because the record of a sent prompt is after the requested lines.
        """
        start = exchange.span.start_line
        if all(turn.line == start for turn in exchange.turns if turn.kind is Kind.PROMPT):
            return exchange.turns
        stored = self._store.exchanges.prompt_lines(excerpt.source.id or 0, start)
        return tuple(
            turn for turn in exchange.turns if stored is None or turn.kind is not Kind.PROMPT or turn.line in stored
        )

    def _excerpt(self, source: Source, start: int, last: int) -> _Excerpt:
        rewound = self._store.exchanges.rewound_lines(source.id or 0, start, last)
        return _Excerpt(source, start, last, self._parse_start(source, start), frozenset(rewound))

    def _parse_start(self, source: Source, start: int) -> ExchangeStart:
        """Return the position at which parsing must start to understand line `start`.

        An exchange can span a whole day, so parsing begins at most `_LEAD` lines before the line. An exchange that is
        not stored is parsed from its start, because its prompt can exclude it from the archive.
        """
        first = self._store.exchanges.start_before(source.id or 0, start)
        line = start - _LEAD
        if line <= first.start_line or self._store.exchanges.header_at(source.id or 0, start) is None:
            return first
        byte = self._raw.start_of(source.archived, line, (first.start_line, first.start_byte))
        return first._replace(start_line=line, start_byte=byte)

    def _placed(self, excerpt: _Excerpt, exchange: Exchange) -> Exchange:
        """Return a partly read exchange with the ordinal, span, start and token counts of the complete exchange.

        If the complete exchange is not stored, such as one with Palaver's own replies, use the values of the lines
        read.
        """
        whole = self._store.exchanges.header_at(excerpt.source.id or 0, exchange.turns[0].line)
        if whole is not None:
            # In a copy that repeats the beginning of another one, the stored ordinals do not count repeated exchanges.
            header = whole._replace(ordinal=max(whole.ordinal, exchange.ordinal))
            return replace(exchange, **header._asdict())
        span = exchange.span
        if excerpt.start <= span.start_line and span.end_line <= excerpt.last:
            return exchange
        first, last = max(span.start_line, excerpt.start), min(span.end_line, excerpt.last)
        return replace(exchange, span=replace(span, start_line=first, end_line=last), tokens_in=0, tokens_out=0)


def exceed_budget(exchanges: list[Exchange], budget: int) -> bool:
    """Return whether the turns of these exchanges take more tokens than a budget."""
    spent = 0
    for turn in (turn for exchange in exchanges for turn in exchange.turns):
        spent += tokens.count(turn.text[:COUNTED])
        if spent > budget:
            return True
    return False


def _tokens(exchanges: list[Exchange]) -> int:
    return sum(tokens.count(turn.text) for exchange in exchanges for turn in exchange.turns)


def within_budget(exchanges: list[Exchange], budget: int) -> tuple[list[Exchange], int | None]:
    """Return the turns that fit the token budget, at least those of one line, and the first omitted line or None."""
    spent, kept, line = 0, list[Exchange](), 0
    for exchange in exchanges:
        for position, turn in enumerate(exchange.turns):
            spent += tokens.count(turn.text)
            if spent > budget and line and turn.line != line:
                if position:
                    kept.append(replace(exchange, turns=exchange.turns[:position]))
                return kept, turn.line
            line = turn.line
        kept.append(exchange)
    return kept, None


class TranscriptPaths:
    """Lookup of archived files by path, session ID or session ID prefix."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._exporter = store, Exporter(store, raw)

    def sources(self, typed: str) -> list[Source]:
        """Return all files that match a name or session ID, including those of sub-agents.

        Raises:
            InvalidInput: No session or several sessions match.
        """
        try:
            return self._exporter.find(typed)
        except InvalidInput as unknown:
            session = self._session(typed)
            if not session:
                unknown.hint = similar_sessions(self._store.sessions, encodable(typed)) + unknown.hint
                raise
        return self._exporter.find(session)

    def path(self, typed: str) -> str:
        """Return the archive path of the latest version of a file, or of the most complete file of a session.

        Raises:
            PathOutsideArchive: No file or session matches.
            InvalidInput: Several session IDs begin with this prefix.
        """
        name, sources = typed, self._found(typed)
        if not sources:
            name = self._session(typed)
            sources = self._found(name)
        if not sources:
            raise PathOutsideArchive(typed, near=similar_sessions(self._store.sessions, encodable(typed)))
        return self._own(sources, name)

    def _found(self, name: str) -> list[Source]:
        with suppress(InvalidInput):
            return self._exporter.find(name)
        return []

    def parts(self, archived: str) -> list[Part]:
        """Return the parts of a session in order of time. `archived` is the path of the session's main file.

        A session has several parts if an agent continued it in another file, for example in another working folder.
        """
        source = self._store.sources.by_archived(archived)
        places = self._store.summaries.places(source.session) if source and source.session else []
        parts, ends = list[Part](), {archived: 0}
        for path, grouped in groupby(places, key=itemgetter(0)):
            end = max(last for _, _, last in grouped)
            parts.append((path, ends.get(path, 0) + 1, end))
            ends[path] = end
        if len(ends) == 1:
            return [(archived, 1, None)]
        return [(path, first, None if last == ends[path] else last) for path, first, last in parts]

    def _own(self, sources: list[Source], name: str) -> str:
        sessions = {source.session: self._store.sessions.load(source.session) for source in sources if source.session}
        own = [each for each in sources if each.session in sessions and sessions[each.session].is_called(name)]
        if len({sessions[each.session].scope for each in own if each.session}) > 1:
            raise ambiguous_session(self._store.sessions, name)
        last = (own or sources)[-1]
        main = self._store.sources.main(last.session) if own and last.session else None
        return (main or last).archived

    def _session(self, start: str) -> str:
        """Return the session ID with this prefix, or an empty string. Raises `InvalidInput` if several IDs match."""
        begun = self._store.sessions.native_ids(encodable(start)) if len(start) >= SHORTEST_ID else []
        if len(begun) > 1:
            raise ambiguous_session(self._store.sessions, start)
        return begun[0] if begun else ""
