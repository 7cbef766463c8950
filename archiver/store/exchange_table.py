"""Exchanges: what was said, parsed once and kept, so that rules and indexes never need the raw lines again."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

import orjson
from msgspec import Struct

from ...core.conversation import Exchange, Kind, Span, Speaker, Turn
from .database import AMONG, Database, Row, listed
from .edit_table import EditTable
from .observation_table import MODEL_PREFIX, ObservationTable
from .repetition_table import Repetition
from .summary_table import SummaryTable


class StoredExchange(Struct, frozen=True):
    """An exchange under its key, with the numbers of its session and source."""

    key: int
    session: int
    source: int
    exchange: Exchange


class ExchangeLocation(NamedTuple):
    """Where an exchange stands, without what was said in it. `path` is relative to the archive."""

    start_line: int
    end_line: int
    project: str
    session_id: str
    path: str


class ExchangeOutline(NamedTuple):
    """An exchange without what was said in it: whose it is, when it was, and which lines of its source it takes."""

    key: int
    session: int
    source: int
    at: int | None
    start_line: int
    end_line: int
    end_byte: int


class ExchangeHeader(NamedTuple):
    """All of an exchange but what was said in it."""

    ordinal: int
    span: Span
    started: int | None
    tokens_in: int
    tokens_out: int


class ExchangeStart(NamedTuple):
    """Where an exchange begins in its source."""

    ordinal: int
    start_line: int
    start_byte: int


_COLUMNS = """i.key, i.session, e.source, e.ordinal, e.start_line, e.end_line, e.start_byte, e.end_byte,
    e.turns, i.at, e.ended, e.cwd, e.branch, e.tokens_in, e.tokens_out"""
_FROM = "FROM exchange e JOIN item i ON i.key = e.item"
_UNOBSERVED = f"(e.observed IS NULL OR (e.observed <> ? AND e.observed NOT LIKE '{MODEL_PREFIX}%'))"


class ExchangeTable:
    """Reads and writes exchanges by source and ordinal; a growing exchange keeps its key."""

    def __init__(self, database: Database, summaries: SummaryTable, observations: ObservationTable) -> None:
        self._db, self._summaries, self._observations = database, summaries, observations
        self._edits = EditTable(database)

    def replace(
        self,
        session: int,
        source: int,
        first: int,
        exchanges: Sequence[Exchange],
        taken_over: Sequence[Repetition] = (),
    ) -> bool:
        """Make these the exchanges of a source from ordinal `first` on; whether some that were there count anew.

        What other sources said on the lines that are `taken_over` keeps its keys and what was learned from it, where
        it is said in the same words.
        """
        known = self._known(source, first)
        moving = self._moving(exchanges, taken_over)
        kept = _matched(known, [each for each in exchanges if each.ordinal not in moving])
        left = {each.key for each in kept.values()}
        self.delete([each.key for each in known.values() if each.key not in left])
        moved = any(known.get(ordinal) is not each for ordinal, each in kept.items())
        if moved:
            self._db.run(
                "UPDATE exchange SET ordinal = -1 - ordinal WHERE source = ? AND ordinal >= ?", (source, first)
            )
        for exchange in exchanges:
            if exchange.ordinal in moving:
                kept[exchange.ordinal] = self._move(moving[exchange.ordinal], session, source, exchange)
        for exchange in exchanges:
            self._put(session, source, exchange, kept.get(exchange.ordinal))
        return moved

    def _moving(self, exchanges: Sequence[Exchange], taken_over: Sequence[Repetition]) -> "dict[int, StoredExchange]":
        """What these exchanges were in other sources, by ordinal, where each turn of it is taken over as it is."""
        places, found = {each.again: each for each in taken_over}, dict[int, StoredExchange]()
        for exchange in exchanges if places else ():
            place = places.get(exchange.turns[0].line) if exchange.turns else None
            stored = None if place is None else self._holding(place.first, place.line)
            if stored is not None and _unplaced(stored.exchange) == _unplaced(exchange):
                found[exchange.ordinal] = stored
        return found

    def _holding(self, source: int, line: int) -> StoredExchange | None:
        rows = self._db.rows(
            f"SELECT {_COLUMNS} {_FROM} WHERE e.source = ? AND ? BETWEEN e.start_line AND e.end_line", (source, line)
        )
        return _stored(rows[0]) if rows else None

    def _move(self, stored: StoredExchange, session: int, source: int, exchange: Exchange) -> "_KnownExchange":
        """Let an exchange of another source be one of this source. What a model was paid for is not asked again; rules
        look at it once more.
        """
        key, span, turns = stored.key, exchange.span, _pack(exchange.turns)
        self._summaries.drop([stored.session])
        self._db.run(
            f"""UPDATE exchange SET source = ?, ordinal = ?, start_line = ?, turns = ?,
                    observed = iif(observed LIKE '{MODEL_PREFIX}%', observed, NULL) WHERE item = ?""",
            (source, exchange.ordinal, span.start_line, turns, key),
        )
        lines = {before.line: now.line for before, now in zip(stored.exchange.turns, exchange.turns, strict=True)}
        self._observations.move(key, session, lines)
        self._summaries.outdate(session)
        return _KnownExchange(key, span.start_line, turns)

    def delete(self, keys: Sequence[int]) -> None:
        """Remove exchanges with their observations and vectors, and the summaries of their sessions."""
        self._summaries.drop(self._sessions_of(keys))
        for key in keys:
            dependent = self._db.rows("SELECT item FROM observation WHERE exchange = ?", (key,))
            doomed = [cast(int, row[0]) for row in dependent] + [key]
            self._db.run_many("DELETE FROM item WHERE key = ?", [(item,) for item in doomed])

    def load(self, keys: Sequence[int]) -> dict[int, StoredExchange]:
        """The exchanges with these keys; unknown keys are left out."""
        rows = self._db.rows_among(f"SELECT {_COLUMNS} {_FROM} WHERE i.key {AMONG}", keys)
        return {stored.key: stored for stored in map(_stored, rows)}

    def long_turns(self, keys: Sequence[int], length: int) -> Iterator[tuple[int, Turn]]:
        """The turns of these exchanges whose text has more than so many characters, each with the key of its exchange.

        Quicker by half than to load what is long, and much quicker where most is short, which is not even read.
        """
        rows = self._db.rows(
            f"SELECT item, turns FROM exchange WHERE item {AMONG} AND length(turns) > ?", (listed(keys), length)
        )
        for key, turns in rows:
            for values in orjson.loads(cast(bytes, turns)):
                if len(values[_TEXT]) > length:
                    yield cast(int, key), _turn(values)

    def heads(self, keys: Sequence[int]) -> dict[int, ExchangeLocation]:
        """Where the exchanges with these keys stand; unknown keys are left out."""
        rows = self._db.rows_among(
            f"""SELECT e.item, e.start_line, e.end_line, s.project, s.native_id, r.archived {_FROM}
                JOIN session s ON s.id = i.session JOIN source r ON r.id = e.source WHERE e.item {AMONG}""",
            keys,
        )
        return {
            cast(int, key): ExchangeLocation(*cast("tuple[int, int, str, str, str]", tuple(row))) for key, *row in rows
        }

    def texts_on(self, key: int, start: int, end: int) -> list[str]:
        """What was said on these lines of an exchange; nothing where it no longer exists."""
        rows = self._db.rows_among(f"SELECT turns FROM exchange WHERE item {AMONG}", [key])
        turns: list[list[Any]] = orjson.loads(cast(bytes, rows[0][0])) if rows else []
        return [text for line, _, _, text, *_ in turns if start <= line <= end]

    def at(self, source: int, ordinal: int) -> StoredExchange | None:
        """The exchange at this place of a source, if there is one."""
        rows = self._db.rows(f"SELECT {_COLUMNS} {_FROM} WHERE e.source = ? AND e.ordinal = ?", (source, ordinal))
        return _stored(rows[0]) if rows else None

    def around(self, key: int, count: int) -> list[int]:
        """The keys of an exchange and of up to `count` before and after it in its source, in order; none where there
        is no such exchange.
        """
        rows = self._db.rows(
            """SELECT near.item FROM exchange this JOIN exchange near ON near.source = this.source
                   AND near.ordinal BETWEEN this.ordinal - ? AND this.ordinal + ?
               WHERE this.item = ? ORDER BY near.ordinal""",
            (count, count, key),
        )
        return [cast(int, row[0]) for row in rows]

    def before(self, source: int, line: int) -> ExchangeStart:
        """Where the exchange that holds a line begins; the start of the file when none does."""
        row = self._db.one(
            """SELECT ordinal, start_line, start_byte FROM exchange WHERE source = ? AND start_line <= ?
               ORDER BY start_line DESC LIMIT 1""",
            (source, line),
        )
        return ExchangeStart(*(cast(int, value) for value in row)) if row else ExchangeStart(0, 1, 0)

    def around_line(self, source: int, line: int) -> ExchangeHeader | None:
        """The whole exchange that a line of a source is in; None where it is in none that is stored."""
        row = self._db.one(
            f"""SELECT e.ordinal, e.start_line, e.end_line, e.start_byte, e.end_byte, i.at, e.tokens_in, e.tokens_out
                {_FROM} WHERE e.source = ? AND e.start_line <= ? ORDER BY e.start_line DESC LIMIT 1""",
            (source, line),
        )
        if row is None or cast(int, row[2]) < line:
            return None
        ordinal, *span, tokens_in, tokens_out = (cast(int, value) for value in (*row[:5], *row[6:]))
        return ExchangeHeader(ordinal, Span(*span), cast("int | None", row[5]), tokens_in, tokens_out)

    def left_behind(self, source: int, start: int, end: int) -> set[int]:
        """The lines of a source from `start` to `end` that the person rewound and left."""
        rows = self._db.rows(
            """SELECT turns FROM exchange WHERE source = ? AND start_line <= ? AND end_line >= ?
                   AND instr(turns, CAST(? AS BLOB))""",
            (source, end, start, _LEFT),
        )
        return {turn.line for (turns,) in rows for turn in _unpack(cast(bytes, turns)) if not turn.active}

    def holding(self, text: str) -> Iterator[tuple[int, Exchange]]:
        """The exchanges in whose turns a text stands that JSON need not escape, with the ids of their sources."""
        rows = self._db.rows("SELECT item FROM exchange WHERE instr(turns, ?) ORDER BY item", (text.encode(),))
        for (key,) in rows:
            for stored in self.load([cast(int, key)]).values():
                yield stored.source, stored.exchange

    def unobserved(self, extractor: str, limit: int) -> list[StoredExchange]:
        """Exchanges that this version of the rules has not seen yet and no language model either, oldest key first."""
        rows = self._db.rows(
            f"SELECT {_COLUMNS} {_FROM} WHERE {_UNOBSERVED} ORDER BY i.key LIMIT ?", (extractor, limit)
        )
        return [_stored(row) for row in rows]

    def outlines(self) -> list[ExchangeOutline]:
        """Every exchange in outline, by key."""
        rows = self._db.rows(
            f"SELECT i.key, i.session, e.source, i.at, e.start_line, e.end_line, e.end_byte {_FROM} ORDER BY i.key"
        )
        return [ExchangeOutline(*cast("tuple[int, int, int, int | None, int, int, int]", row)) for row in rows]

    def count_unobserved(self, extractor: str) -> int:
        """How many exchanges wait for the rules."""
        return self._db.number(f"SELECT count(*) FROM exchange e WHERE {_UNOBSERVED}", (extractor,))

    def count(self) -> int:
        """How many exchanges there are."""
        return self._db.number("SELECT count(*) FROM exchange")

    def _sessions_of(self, keys: Sequence[int]) -> list[int]:
        rows = self._db.rows_among(f"SELECT DISTINCT session FROM item WHERE key {AMONG}", keys)
        return [cast(int, row[0]) for row in rows]

    def _known(self, source: int, first: int) -> "dict[int, _KnownExchange]":
        rows = self._db.rows(
            "SELECT ordinal, item, start_line, turns FROM exchange WHERE source = ? AND ordinal >= ?", (source, first)
        )
        return {
            cast(int, ordinal): _KnownExchange(*cast("tuple[int, int, bytes]", tuple(row))) for ordinal, *row in rows
        }

    def _put(self, session: int, source: int, exchange: Exchange, known: "_KnownExchange | None") -> None:
        """Insert an exchange, or update the one that it was before; changed turns are embedded and observed again."""
        turns = _pack(exchange.turns)
        if known is None:
            key = self._db.run(
                "INSERT INTO item (kind, session, at) VALUES ('exchange', ?, ?)", (session, exchange.started)
            )
            self._write(key, source, exchange, turns)
            self._edits.replace(key, exchange.writes)
            return
        key, before = known.key, known.turns
        self._db.run("UPDATE item SET at = ? WHERE key = ?", (exchange.started, key))
        self._write(key, source, exchange, turns)
        if before == turns:
            return
        if not turns.startswith(before.removesuffix(b"]")):
            # What only grew still says all that a summary quotes, and the summary keeps its key.
            self._summaries.drop([session])
        self._edits.replace(key, exchange.writes)
        self._db.run("UPDATE item SET embedded = NULL WHERE key = ?", (key,))
        self._db.run("UPDATE exchange SET observed = NULL WHERE item = ?", (key,))

    def _write(self, key: int, source: int, exchange: Exchange, turns: bytes) -> None:
        span = exchange.span
        self._db.run(
            """INSERT INTO exchange (item, source, ordinal, start_line, end_line, start_byte, end_byte, cwd, branch,
                   ended, tokens_in, tokens_out, turns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (item) DO UPDATE SET ordinal = excluded.ordinal, start_line = excluded.start_line,
                   end_line = excluded.end_line, start_byte = excluded.start_byte, end_byte = excluded.end_byte,
                   cwd = excluded.cwd, branch = excluded.branch, ended = excluded.ended,
                   tokens_in = excluded.tokens_in, tokens_out = excluded.tokens_out, turns = excluded.turns""",
            (
                key,
                source,
                exchange.ordinal,
                span.start_line,
                span.end_line,
                span.start_byte,
                span.end_byte,
                exchange.cwd,
                exchange.branch,
                exchange.ended,
                exchange.tokens_in,
                exchange.tokens_out,
                turns,
            ),
        )


class _KnownExchange(NamedTuple):
    """An exchange as it was stored before."""

    key: int
    start_line: int
    turns: bytes


def _matched(known: "dict[int, _KnownExchange]", exchanges: Sequence[Exchange]) -> "dict[int, _KnownExchange]":
    """What each exchange was before, by ordinal: the one that begins on its line, else the one that counted like it."""
    begun = {each.start_line: each for each in known.values()}
    kept = {each.ordinal: begun[each.span.start_line] for each in exchanges if each.span.start_line in begun}
    taken = {each.key for each in kept.values()}
    left = {ordinal: each for ordinal, each in known.items() if each.key not in taken and ordinal not in kept}
    return kept | {each.ordinal: left[each.ordinal] for each in exchanges if each.ordinal in left}


def _unplaced(exchange: Exchange) -> list[Turn]:
    """What was said, wherever it stands."""
    return [turn._replace(line=0) for turn in exchange.turns]


_TEXT = Turn._fields.index("text")
_LEFT = "false]"
"""How a turn ends that is not active. Looking for it takes a tenth of the time of reading a long exchange."""
# Looking a value up is three times as fast as calling the enumeration, and an archive has millions of turns.
_SPEAKERS = {speaker.value: speaker for speaker in Speaker}
_KINDS = {kind.value: kind for kind in Kind}


def _pack(turns: Sequence[Turn]) -> bytes:
    return orjson.dumps([tuple(turn) for turn in turns])


def _unpack(data: bytes) -> tuple[Turn, ...]:
    return tuple(map(_turn, orjson.loads(data)))


def _turn(values: list[Any]) -> Turn:
    line, speaker, kind, text, at, record, group, tool, call, failed, reads, writes, active = values
    speaker, kind, reads, writes = _SPEAKERS[speaker], _KINDS[kind], tuple(reads), tuple(writes)
    return Turn(line, speaker, kind, text, at, record, group, tool, call, failed, reads, writes, active)


def _stored(row: Row) -> StoredExchange:
    numbers = [cast(int, value) for value in row[:8]]
    key, session, source, ordinal, *span = numbers
    exchange = Exchange(
        ordinal=ordinal,
        span=Span(*span),
        turns=_unpack(cast(bytes, row[8])),
        started=cast("int | None", row[9]),
        ended=cast("int | None", row[10]),
        cwd=str(row[11]),
        branch=str(row[12]),
        tokens_in=cast(int, row[13]),
        tokens_out=cast(int, row[14]),
    )
    return StoredExchange(key, session, source, exchange)
