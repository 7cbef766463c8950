"""Tables of exchanges in parsed form, of the files that they edited, and of all searchable items.

An exchange is a prompt with everything up to the next prompt. Extraction rules and indexes read this table, so they
do not parse the raw copies again.

- Edits help to find the exchange that wrote a line of code.
- File states are keyed hashes of files at the time of an exchange, which show whether a file changed later.
- A repetition is a line of one source that another source repeats, as in forks, resumed sessions and copies.
- Items are the searchable content of every kind. All kinds share one sequence of IDs.
"""

import json
import ntpath
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import PureWindowsPath
from typing import Any, Final, NamedTuple

import orjson
from msgspec import Struct

from ...core.conversation import Exchange, Kind, Milliseconds, SessionKind, Span, Speaker, Turn
from ...core.results import TurnCost, turn_costs
from .database import AMONG, Database, Row, Value, listed
from .observation_table import MODEL_PREFIX, OPTED_OUT, ObservationTable
from .session_table import SummaryTable
from .source_table import NO_DEVICE


class Edit(NamedTuple):
    """File that an exchange changed.

    `path` is the path in the agent's tool call. A relative path is relative to `cwd`. `session` is the store's session
    ID. `archived` is the raw copy that contains the exchange. Unknown times are None.
    """

    exchange: int
    path: str
    session: int
    archived: str
    cwd: str
    started: Milliseconds | None
    ended: Milliseconds | None

    @property
    def absolute_path(self) -> str:
        """Normalised absolute path. A relative `path` is joined to `cwd`, the agent's working folder."""
        return absolute_path(self.path, self.cwd)


def absolute_path(path: str, folder: str) -> str:
    """Return the normalised path of a file in a folder. Paths with a drive are those of Windows on every system."""
    is_windows = any(PureWindowsPath(name).drive for name in (path, folder))
    if is_windows:
        return ntpath.normpath(ntpath.join(folder, path))
    return os.path.normpath(os.path.join(folder, path))  # noqa: PTH118 - resolves `..` without reading the disk


class EditTable:
    """Table of the files that exchanges changed."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def replace(self, exchange: int, paths: Sequence[str]) -> None:
        """Replace the stored list of files that an exchange changed."""
        self._db.run("DELETE FROM edited_file WHERE exchange = ?", (exchange,))
        self._db.run_many(
            "INSERT INTO edited_file (exchange, path) VALUES (?, ?)", [(exchange, path) for path in paths]
        )

    def of_names(self, names: Sequence[str], limit: int, sessions: Sequence[int] | None = None) -> list[Edit]:
        """Return edits of files with one of these file names, in any folder, newest first.

        With `sessions`, return only edits in these sessions.
        """
        suffixes = listed([*names, *(f"{separator}{name}" for name in names for separator in "/\\")])
        equal = "d.path IN (SELECT value FROM json_each(?1))"
        ends = "substr(d.path, -length(value)) = value AND value GLOB '[/\\]*'"
        named = f"({equal} OR EXISTS (SELECT 1 FROM json_each(?1) WHERE {ends}))"
        if sessions is None:
            return self._select(named, (suffixes, limit))
        within = "i.session IN (SELECT value FROM json_each(?3))"
        return self._select(f"{named} AND {within}", (suffixes, limit, listed(sessions)))

    def of_exchanges(self, exchanges: Sequence[int]) -> list[Edit]:
        """Return the edits of these exchanges."""
        return self._select("d.exchange IN (SELECT value FROM json_each(?1))", (listed(exchanges), -1))

    def newest(self, native_id: str | None) -> list[Edit]:
        """Return all edits, newest first. With `native_id`, return only edits of the sessions with this ID."""
        return self._select("?1 IS NULL OR s.native_id = ?1", (native_id, -1))

    def _select(self, where: str, values: tuple[Value, ...]) -> list[Edit]:
        rows = self._db.rows(
            f"""SELECT d.exchange, d.path, i.session, r.archived, coalesce(nullif(e.cwd, ''), s.cwd), i.at, e.ended
                FROM edited_file d JOIN exchange e ON e.item = d.exchange JOIN item i ON i.key = d.exchange
                JOIN source r ON r.id = e.source JOIN session s ON s.id = i.session
                WHERE {where} ORDER BY coalesce(e.ended, i.at, 0) DESC, d.exchange DESC LIMIT ?2""",
            values,
        )
        return [Edit(*row) for row in rows]


class FileState(NamedTuple):
    """Content of a file at the time of an exchange.

    `path` is the path as observations cite it. `file` is the absolute path. `hash` is the keyed hash of the content.
    """

    path: str
    file: str
    hash: bytes


class FileStateTable:
    """Table of file states, by exchange. When the turns of an exchange change, its file states are deleted."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def replace(self, exchange: int, states: Sequence[FileState]) -> None:
        """Replace the file states of an exchange."""
        self._db.run("DELETE FROM file_state WHERE exchange = ?", (exchange,))
        self._db.run_many(
            "INSERT OR REPLACE INTO file_state VALUES (?, ?, ?, ?)", [(exchange, *state) for state in states]
        )

    def of_exchanges(self, exchanges: Sequence[int]) -> dict[int, list[FileState]]:
        """Return the file states of each exchange. Exchanges without file states are omitted."""
        rows = self._db.rows_among(
            f"SELECT exchange, path, file, hash FROM file_state WHERE exchange {AMONG} ORDER BY exchange, path",
            exchanges,
        )
        states: dict[int, list[FileState]] = {}
        for exchange, *values in rows:
            states.setdefault(exchange, []).append(FileState(*values))
        return states


class Repetition(NamedTuple):
    """Line of a source that repeats a line of another source.

    `again` is the number of the repeating line. The repeated line is line `line` of the source with the ID `first`.
    """

    first: int
    line: int
    again: int


class RepetitionTable:
    """Table that records which lines of other sources repeat an exchange."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def record(self, source: int, repetitions: Iterable[Repetition], *, replace: bool) -> None:
        """Record the lines of a source that repeat other sources. With `replace`, first delete its earlier records."""
        if replace:
            self._db.run("DELETE FROM repetition WHERE repeated_in = ?", (source,))
        rows = json.dumps([tuple(repetition) for repetition in repetitions])
        self._db.run(
            """INSERT INTO repetition (source, ordinal, repeated_in, start_line, end_line)
                   SELECT e.source, e.ordinal, ?1, min(line.value ->> 2), max(line.value ->> 2)
                   FROM json_each(?2) AS line JOIN exchange e ON e.source = line.value ->> 0
                       AND line.value ->> 1 BETWEEN e.start_line AND e.end_line
                   GROUP BY e.source, e.ordinal
               ON CONFLICT DO UPDATE SET start_line = min(start_line, excluded.start_line),
                   end_line = max(end_line, excluded.end_line)""",
            (source, rows),
        )

    def outdate(self, sources: Collection[int]) -> None:
        """Schedule a new read of all sources that repeat lines of the given sources.

        Call this after a change to the exchanges of the given sources.
        """
        self._db.run(
            f"UPDATE source SET rules = '' WHERE id IN (SELECT repeated_in FROM repetition WHERE source {AMONG})",
            (listed(sources),),
        )

    def repeating(self, sources: Collection[int]) -> set[int]:
        """Return the sources that repeat lines of the given sources."""
        return set(
            self._db.numbers(f"SELECT DISTINCT repeated_in FROM repetition WHERE source {AMONG}", (listed(sources),))
        )

    def of_exchanges(self, keys: Sequence[int]) -> dict[int, tuple[str, ...]]:
        """Map each exchange to the IDs of other sessions that repeat it. Exchanges without repetitions are omitted."""
        rows = self._db.rows_among(
            f"""SELECT DISTINCT e.item, t.session, s.native_id FROM exchange e JOIN item i ON i.key = e.item
                   JOIN repetition r ON (r.source, r.ordinal) = (e.source, e.ordinal)
                   JOIN source t ON t.id = r.repeated_in JOIN session s ON s.id = t.session
               WHERE e.item {AMONG} AND t.session <> i.session
               ORDER BY e.item, t.session""",
            keys,
        )
        found: dict[int, tuple[str, ...]] = {}
        for key, _, session in rows:
            found[key] = (*found.get(key, ()), session)
        return found

    def in_files(self, keys: Sequence[int]) -> list[tuple[int, int, int]]:
        """Return the lines on which files of the same session repeat these exchanges of containers.

        Each tuple contains the ID of the source of the file, its first line and its last line.
        """
        rows = self._db.rows_among(
            f"""SELECT r.repeated_in, r.start_line, r.end_line FROM exchange e
                   JOIN repetition r ON (r.source, r.ordinal) = (e.source, e.ordinal)
                   JOIN source c ON c.id = e.source JOIN source f ON f.id = r.repeated_in
               WHERE e.item {AMONG} AND c.device = {NO_DEVICE} AND f.device <> {NO_DEVICE} AND f.session = c.session""",
            keys,
        )
        return [(source, start, end) for source, start, end in rows]

    def copied_start(self, source: int) -> tuple[int, int] | None:
        """Return the session of which a source repeats the first lines, and the last of these lines, or None."""
        row = self._db.one(
            """SELECT t.session, max(r.end_line) FROM repetition r JOIN source t ON t.id = r.source
               WHERE r.repeated_in = ?1 AND t.session <> (SELECT session FROM source WHERE id = ?1)
                   AND r.end_line < coalesce((SELECT min(start_line) FROM exchange WHERE source = ?1), r.end_line + 1)
               GROUP BY t.session ORDER BY 2 DESC LIMIT 1""",
            (source,),
        )
        return (row[0], row[1]) if row else None

    def on_lines(self, source: int, start: int, end: int) -> tuple[str, ...]:
        """Return the IDs of all other sessions that contain some of the lines `start` to `end` of a source.

        A session is included whether it repeats these lines or contained them first.
        """
        rows = self._db.rows(
            """WITH here AS (
                   SELECT e.source, e.ordinal FROM exchange e
                       WHERE e.source = ?1 AND e.start_line <= ?3 AND e.end_line >= ?2
                   UNION SELECT e.source, e.ordinal FROM repetition r JOIN exchange e USING (source, ordinal)
                       WHERE r.repeated_in = ?1 AND r.start_line <= ?3 AND r.end_line >= ?2
               ), place AS (
                   SELECT source FROM here
                   UNION SELECT r.repeated_in FROM here JOIN repetition r USING (source, ordinal)
               )
               SELECT DISTINCT s.id, s.native_id FROM place JOIN source t ON t.id = place.source
                   JOIN session s ON s.id = t.session
               WHERE s.id <> (SELECT session FROM source WHERE id = ?1) ORDER BY s.id""",
            (source, start, end),
        )
        return tuple(name for _, name in rows)


class StoredExchange(Struct, frozen=True):
    """Exchange with its key and the IDs of its session and source."""

    key: int
    session: int
    source: int
    exchange: Exchange


class ExchangeLocation(NamedTuple):
    """Lines, project, session and branch of an exchange, and its source with the path relative to the archive."""

    start_line: int
    end_line: int
    project: str
    session_id: str
    path: str
    session: int
    source: int
    branch: str


class ExchangeOutline(NamedTuple):
    """Session, source, time and lines of an exchange."""

    key: int
    session: int
    source: int
    at: int | None
    start_line: int
    end_line: int
    end_byte: int


class ExchangeHeader(NamedTuple):
    """Position, start time and token counts of an exchange, without its turns."""

    ordinal: int
    span: Span
    started: int | None
    tokens_in: int
    tokens_out: int


class ExchangeSpan(NamedTuple):
    """Key, ordinal and span of an exchange of a source."""

    key: int
    ordinal: int
    span: Span


class StoredPrompt(NamedTuple):
    """Text that a user typed, with its exchange, session, source, line and time."""

    exchange: int
    session: int
    source: int
    line: int
    text: str
    at: int | None


class ExchangeStart(NamedTuple):
    """Ordinal of an exchange, and the line and byte at which it begins in its source."""

    ordinal: int
    start_line: int
    start_byte: int


class _KnownExchange(NamedTuple):
    """Stored exchange that an update may replace. `turns` is JSON."""

    key: int
    start_line: int
    turns: bytes


_COLUMNS: Final = """i.key, i.session, e.source, e.ordinal, e.start_line, e.end_line, e.start_byte, e.end_byte,
    e.turns, i.at, e.ended, e.cwd, e.branch, e.tokens_in, e.tokens_out"""
_COSTS: Final = "iif(turn_costs IS NULL, turns, NULL), turn_costs"
_FROM: Final = "FROM exchange e JOIN item i ON i.key = e.item"
_UNOBSERVED: Final = f"(e.observed IS NULL OR (e.observed <> ? AND e.observed NOT LIKE '{MODEL_PREFIX}%'))"
_INACTIVE: Final = b"false]"
"""Last bytes of the JSON of a rewound turn. Searching for them is ten times as fast as parsing a long exchange."""
_PROMPT_HEAD: Final = 200
"""Number of characters by which a prompt is searched in the JSON of an exchange."""
# A dictionary lookup is three times as fast as a call of the enumeration, and an archive has millions of turns.
_SPEAKERS: Final = {speaker.value: speaker for speaker in Speaker}
_KINDS: Final = {kind.value: kind for kind in Kind}


class ExchangeTable:
    """Table of exchanges, keyed by source and ordinal. An exchange keeps its key while it grows."""

    def __init__(self, database: Database, summaries: SummaryTable, observations: ObservationTable) -> None:
        self._db, self._summaries, self._observations = database, summaries, observations
        self._edits, self._file_states = EditTable(database), FileStateTable(database)

    def replace(
        self,
        session: int,
        source: int,
        first: int,
        exchanges: Sequence[Exchange],
        moved: Sequence[Repetition] = (),
    ) -> bool:
        """Replace the exchanges of a source from ordinal `first` on. Return True if a kept exchange was renumbered.

        `moved` lists lines of this source that forks, which were ingested earlier, also contain. An exchange of a fork
        on such a line moves to this source if a new exchange has the same turns. A moved exchange keeps its key and
        observations. If this source already contains the exchange, its own key is kept.
        """
        stored = self._known(source, first)
        turns = {each.turns for each in stored.values()}
        moving = self._moving([each for each in exchanges if _pack(each.turns) not in turns] if moved else (), moved)
        kept = _matched(stored, [each for each in exchanges if each.ordinal not in moving])
        left = {each.key for each in kept.values()}
        self.delete([each.key for each in stored.values() if each.key not in left])
        renumbered = any(stored.get(ordinal) is not each for ordinal, each in kept.items())
        if renumbered:
            self._db.run(
                "UPDATE exchange SET ordinal = -1 - ordinal WHERE source = ? AND ordinal >= ?", (source, first)
            )
        for exchange in exchanges:
            if exchange.ordinal in moving:
                kept[exchange.ordinal] = self._move(moving[exchange.ordinal], session, source, exchange)
        for exchange in exchanges:
            self._put(session, source, exchange, kept.get(exchange.ordinal))
        return renumbered

    def set_session(self, source: int, before: int, session: int) -> None:
        """Move the exchanges of a source, with their observations, from the session `before` to another session."""
        self._summaries.drop([before])
        for key in self.in_source(source):
            self._observations.move(key, session, {})
        self._summaries.outdate(session)

    def delete(self, keys: Sequence[int]) -> None:
        """Delete exchanges with their observations and vectors, and the summaries of their sessions."""
        self._summaries.drop(
            [session for (session,) in self._db.rows_among(f"SELECT session FROM item WHERE key {AMONG}", keys)]
        )
        observations = self._db.numbers(f"SELECT item FROM observation WHERE exchange {AMONG}", (listed(keys),))
        self._db.run_many("DELETE FROM item WHERE key = ?", [(item,) for item in (*observations, *keys)])

    def load(self, keys: Sequence[int]) -> dict[int, StoredExchange]:
        """Return the exchanges with these keys. Unknown keys are omitted."""
        rows = self._db.rows_among(f"SELECT {_COLUMNS} {_FROM} WHERE i.key {AMONG}", keys)
        return {stored.key: stored for stored in map(_stored, rows)}

    def at(self, source: int, ordinal: int) -> StoredExchange | None:
        """Return the exchange with this ordinal in a source, or None if it does not exist."""
        return self._first(f"SELECT {_COLUMNS} {_FROM} WHERE e.source = ? AND e.ordinal = ?", (source, ordinal))

    def in_source(self, source: int) -> list[int]:
        """Return the keys of the exchanges of a source, in order."""
        return self._db.numbers("SELECT item FROM exchange WHERE source = ? ORDER BY ordinal", (source,))

    def spans(self, source: int) -> list[ExchangeSpan]:
        """Return the spans of the exchanges of a source, in order."""
        rows = self._db.rows(
            """SELECT item, ordinal, start_line, end_line, start_byte, end_byte FROM exchange
               WHERE source = ? ORDER BY ordinal""",
            (source,),
        )
        return [ExchangeSpan(key, ordinal, Span(*span)) for key, ordinal, *span in rows]

    def of_session(self, session: int, *, contained: bool) -> list[StoredExchange]:
        """Return the exchanges of a session in containers or in files, in the order of their lines."""
        rows = self._db.rows(
            f"""SELECT {_COLUMNS} {_FROM} JOIN source r ON r.id = e.source
                WHERE r.session = ? AND (r.device = {NO_DEVICE}) = ? ORDER BY e.source, e.ordinal""",
            (session, contained),
        )
        return [_stored(row) for row in rows]

    def first_of_session(self, session: int) -> Exchange | None:
        """Return the first exchange of a session, or None if it has none."""
        keys = self._db.numbers("SELECT min(item) FROM exchange JOIN item ON key = item WHERE session = ?", (session,))
        return next((stored.exchange for stored in self.load(keys).values()), None)

    def last_of_session(self, session: int) -> Exchange | None:
        """Return the last exchange of a session, or None if it has none."""
        keys = self._db.numbers("SELECT max(item) FROM exchange JOIN item ON key = item WHERE session = ?", (session,))
        return next((stored.exchange for stored in self.load(keys).values()), None)

    def beginning(self, source: int) -> Iterator[Exchange]:
        """Yield the exchanges of a source, in order, each read when it is needed."""
        for key in self.in_source(source):
            for stored in self.load([key]).values():
                yield stored.exchange

    def beginning_with(self, sources: Collection[int], prompts: Iterable[str]) -> list[int]:
        """Return the sources among these whose first exchange contains the beginning of one of these prompts."""
        heads = [orjson.dumps(prompt[:_PROMPT_HEAD])[1:-1].decode() for prompt in prompts if prompt]
        return self._db.numbers(
            f"""SELECT e.source FROM exchange e WHERE e.source {AMONG}
                AND e.ordinal = (SELECT min(ordinal) FROM exchange WHERE source = e.source)
                AND EXISTS (SELECT 1 FROM json_each(?) WHERE instr(e.turns, CAST(value AS BLOB)))""",
            (listed(sources), json.dumps(heads)),
        )

    def around(self, key: int, count: int) -> list[int]:
        """Return the keys of an exchange and of up to `count` exchanges before and after it in its source, in order.

        The result is empty if the exchange does not exist.
        """
        return self._db.numbers(
            """SELECT near.item FROM exchange this JOIN exchange near ON near.source = this.source
                   AND near.ordinal BETWEEN this.ordinal - ? AND this.ordinal + ?
               WHERE this.item = ? ORDER BY near.ordinal""",
            (count, count, key),
        )

    def locations(self, keys: Sequence[int]) -> dict[int, ExchangeLocation]:
        """Return the locations of the exchanges with these keys. Unknown keys are omitted."""
        rows = self._db.rows_among(
            f"""SELECT e.item, e.start_line, e.end_line, s.project, s.native_id, r.archived, i.session, e.source,
                    iif(e.branch <> '', e.branch, s.branch) {_FROM}
                JOIN session s ON s.id = i.session JOIN source r ON r.id = e.source WHERE e.item {AMONG}""",
            keys,
        )
        return {row[0]: ExchangeLocation(*row[1:]) for row in rows}

    def texts_on(self, key: int, start: int, end: int) -> list[str]:
        """Return the texts of the turns on the lines `start` to `end` of an exchange.

        The result is empty if the exchange does not exist.
        """
        rows = self._db.rows_among(f"SELECT turns FROM exchange WHERE item {AMONG}", [key])
        turns: list[list[Any]] = orjson.loads(rows[0][0]) if rows else []
        return [text for line, _, _, text, *_ in turns if start <= line <= end]

    def costs_in(self, source: int, start: int, end: int) -> list[TurnCost]:
        """Return the costs of the turns on the lines `start` to `end` of a source, in order.

        The turns can belong to several exchanges, like the evidence of a session summary.
        """
        rows = self._db.rows(
            f"SELECT {_COSTS} FROM exchange WHERE source = ? AND start_line <= ? AND end_line >= ? ORDER BY start_line",
            (source, end, start),
        )
        return [cost for row in rows for cost in _turn_costs(*row) if start <= cost.line <= end]

    def costs_of(self, keys: Sequence[int]) -> list[TurnCost]:
        """Return the costs of all turns of these exchanges."""
        rows = self._db.rows_among(f"SELECT {_COSTS} FROM exchange WHERE item {AMONG}", keys)
        return [cost for row in rows for cost in _turn_costs(*row)]

    def without_costs(self, limit: int) -> list[tuple[int, bytes]]:
        """Return the key and the packed turns of up to `limit` exchanges whose costs are not stored.

        New exchanges have no stored costs, and a trigger drops the costs of an exchange when its turns change.
        """
        return self._db.rows("SELECT item, turns FROM exchange WHERE turn_costs IS NULL LIMIT ?", (limit,))

    def store_costs(self, exchanges: Iterable[tuple[int, bytes]]) -> None:
        """Store the costs of exchanges from `without_costs`, except where the turns have changed since."""
        costs = [(orjson.dumps([*map(tuple, turn_costs(unpack(turns)))]), key, turns) for key, turns in exchanges]
        self._db.run_many("UPDATE exchange SET turn_costs = ? WHERE item = ? AND turns = ?", costs)

    def start_before(self, source: int, line: int) -> ExchangeStart:
        """Return the start of the last exchange that begins on or before a line.

        If there is none, return the start of the file.
        """
        row = self._db.one(
            """SELECT ordinal, start_line, start_byte FROM exchange WHERE source = ? AND start_line <= ?
               ORDER BY start_line DESC LIMIT 1""",
            (source, line),
        )
        return ExchangeStart(*row) if row else ExchangeStart(0, 1, 0)

    def header_at(self, source: int, line: int) -> ExchangeHeader | None:
        """Return the header of the exchange that contains a line of a source, or None if there is none."""
        row = self._db.one(
            f"""SELECT e.ordinal, e.start_line, e.end_line, e.start_byte, e.end_byte, i.at, e.tokens_in, e.tokens_out
                {_FROM} WHERE e.source = ? AND e.start_line <= ? ORDER BY e.start_line DESC LIMIT 1""",
            (source, line),
        )
        if row is None or row[2] < line:
            return None
        ordinal, start_line, end_line, start_byte, end_byte, started, tokens_in, tokens_out = row
        return ExchangeHeader(ordinal, Span(start_line, end_line, start_byte, end_byte), started, tokens_in, tokens_out)

    def calls_before(self, source: int | None, line: int, calls: Collection[str]) -> dict[str, Turn]:
        """Return the calls with these IDs in the exchanges of a source that begin before a line. Omit unknown IDs."""
        turns_of_calls: dict[str, Turn] = {}
        for call in calls:
            row = self._db.one(
                """SELECT turns FROM exchange WHERE source = ? AND start_line < ? AND instr(turns, ?)
                   ORDER BY start_line DESC LIMIT 1""",
                (source, line, orjson.dumps(call)),
            )
            turns = unpack(row[0]) if row else ()
            turns_of_calls |= {turn.call: turn for turn in turns if turn.kind is Kind.CALL and turn.call == call}
        return turns_of_calls

    def rewound_lines(self, source: int, start: int, end: int) -> set[int]:
        """Return the lines of a source from `start` to `end` that belong to a rewound branch."""
        rows = self._db.rows(
            "SELECT turns FROM exchange WHERE source = ? AND start_line <= ? AND end_line >= ? AND instr(turns, ?)",
            (source, end, start, _INACTIVE),
        )
        return {turn.line for (turns,) in rows for turn in unpack(turns) if not turn.active}

    def prompt_lines(self, source: int, start: int) -> set[int] | None:
        """Return the lines of all prompts in the exchange that begins on a line, or None if no exchange does."""
        row = self._db.one("SELECT turns FROM exchange WHERE source = ? AND start_line = ?", (source, start))
        return {turn.line for turn in unpack(row[0]) if turn.kind is Kind.PROMPT} if row else None

    def containing(self, text: str) -> Iterator[tuple[int, Exchange]]:
        """Yield the source ID and the content of every exchange whose turns contain a text.

        The text must not contain characters that JSON escapes.
        """
        for key in self._db.numbers("SELECT item FROM exchange WHERE instr(turns, ?) ORDER BY item", (text.encode(),)):
            for stored in self.load([key]).values():
                yield stored.source, stored.exchange

    def outlines(self) -> list[ExchangeOutline]:
        """Return the outline of every exchange, in key order."""
        rows = self._db.rows(
            f"SELECT i.key, i.session, e.source, i.at, e.start_line, e.end_line, e.end_byte {_FROM} ORDER BY i.key"
        )
        return [ExchangeOutline(*row) for row in rows]

    def prompts(self) -> Iterator[StoredPrompt]:
        """Yield the prompts of users, and their reasons for refusing a tool call, in key order.

        Only main sessions are searched. Rewound turns and exchanges that the user excluded from extraction are omitted.
        """
        keys = self._db.numbers(
            """SELECT i.key FROM item i JOIN exchange e ON e.item = i.key JOIN session s ON s.id = i.session
               WHERE s.kind = ? AND coalesce(e.observed, '') <> ? ORDER BY i.key""",
            (SessionKind.MAIN, OPTED_OUT),
        )
        for key in keys:
            for stored in self.load([key]).values():
                for turn in stored.exchange.turns:
                    objects = turn.kind is Kind.RESULT and turn.failed
                    if turn.active and turn.speaker is Speaker.HUMAN and (turn.kind is Kind.PROMPT or objects):
                        yield StoredPrompt(key, stored.session, stored.source, turn.line, turn.text, turn.at)

    def unobserved(self, extractor: str, limit: int) -> list[StoredExchange]:
        """Return up to `limit` exchanges that still need an extraction by rules, in key order.

        Exchanges that a language model has processed are omitted. `extractor` is the current version of the rules.
        """
        rows = self._db.rows(
            f"SELECT {_COLUMNS} {_FROM} WHERE {_UNOBSERVED} ORDER BY i.key LIMIT ?", (extractor, limit)
        )
        return [_stored(row) for row in rows]

    def count_unobserved(self, extractor: str) -> int:
        """Count the exchanges that still need an extraction by rules (see `unobserved`)."""
        return self._db.number(f"SELECT count(*) FROM exchange e WHERE {_UNOBSERVED}", (extractor,))

    def count(self) -> int:
        """Count all exchanges."""
        return self._db.number("SELECT count(*) FROM exchange")

    def _known(self, source: int, first: int) -> dict[int, _KnownExchange]:
        rows = self._db.rows(
            "SELECT ordinal, item, start_line, turns FROM exchange WHERE source = ? AND ordinal >= ?", (source, first)
        )
        return {row[0]: _KnownExchange(*row[1:]) for row in rows}

    def _moving(self, exchanges: Sequence[Exchange], moved: Sequence[Repetition]) -> dict[int, StoredExchange]:
        """Return the exchanges of other sources that move to this source, by their new ordinals."""
        places, moving = {repetition.again: repetition for repetition in moved}, dict[int, StoredExchange]()
        for exchange in exchanges if places else ():
            repetition = places.get(exchange.turns[0].line) if exchange.turns else None
            if repetition is not None:
                sql = f"SELECT {_COLUMNS} {_FROM} WHERE e.source = ? AND ? BETWEEN e.start_line AND e.end_line"
                stored = self._first(sql, (repetition.first, repetition.line))
                if stored is not None and _content(stored.exchange) == _content(exchange):
                    moving[exchange.ordinal] = stored
        return moving

    def _move(self, stored: StoredExchange, session: int, source: int, exchange: Exchange) -> _KnownExchange:
        """Move an exchange of another source to this source.

        Observations by a language model stay valid. Otherwise, schedule a new extraction by rules.
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

    def _put(self, session: int, source: int, exchange: Exchange, stored: _KnownExchange | None) -> None:
        """Insert or update an exchange. If its turns changed, schedule a new embedding and a new extraction."""
        turns = _pack(exchange.turns)
        if stored is None:
            key = self._db.run(
                "INSERT INTO item (kind, session, at) VALUES ('exchange', ?, ?)", (session, exchange.started)
            )
        else:
            key = stored.key
            self._db.run("UPDATE item SET at = ? WHERE key = ?", (exchange.started, key))
        span = exchange.span
        self._db.upsert(
            "exchange",
            "item",
            {
                "item": key,
                "source": source,
                "ordinal": exchange.ordinal,
                "start_line": span.start_line,
                "end_line": span.end_line,
                "start_byte": span.start_byte,
                "end_byte": span.end_byte,
                "cwd": exchange.cwd,
                "branch": exchange.branch,
                "ended": exchange.ended,
                "tokens_in": exchange.tokens_in,
                "tokens_out": exchange.tokens_out,
                "turns": turns,
            },
        )
        if stored is None or stored.turns != turns:
            self._edits.replace(key, exchange.writes)
            self._file_states.replace(key, ())
        if stored is not None and stored.turns != turns:
            if not turns.startswith(stored.turns.removesuffix(b"]")):
                # An exchange that only grew still contains every text that a summary quotes.
                self._summaries.drop([session])
            self._db.run("UPDATE item SET embedded = NULL WHERE key = ?", (key,))
            self._db.run("UPDATE exchange SET observed = NULL WHERE item = ?", (key,))

    def _first(self, sql: str, values: tuple[int, ...]) -> StoredExchange | None:
        row = self._db.one(sql, values)
        return _stored(row) if row else None


def _matched(stored: dict[int, _KnownExchange], exchanges: Sequence[Exchange]) -> dict[int, _KnownExchange]:
    """Map the ordinal of each new exchange to the stored exchange that it updates.

    Exchanges are matched by their first line, and the remaining ones by their ordinal.
    """
    by_line = {exchange.start_line: exchange for exchange in stored.values()}
    kept = {
        exchange.ordinal: by_line[exchange.span.start_line]
        for exchange in exchanges
        if exchange.span.start_line in by_line
    }
    taken = {exchange.key for exchange in kept.values()}
    left = {
        ordinal: exchange for ordinal, exchange in stored.items() if exchange.key not in taken and ordinal not in kept
    }
    return kept | {exchange.ordinal: left[exchange.ordinal] for exchange in exchanges if exchange.ordinal in left}


def _content(exchange: Exchange) -> list[tuple[Kind, str]]:
    """Return the parts of an exchange that all of its copies share. Copies can have other lines, IDs and times."""
    return [(turn.kind, turn.text) for turn in exchange.turns]


def _pack(turns: Sequence[Turn]) -> bytes:
    return orjson.dumps([tuple(turn) for turn in turns])


def unpack(data: bytes) -> tuple[Turn, ...]:
    """Return the turns that the column `turns` contains."""
    return tuple(map(_turn, orjson.loads(data)))


def _turn_costs(turns: bytes | None, costs: bytes | None) -> list[TurnCost]:
    """Return the stored costs of an exchange, or those of its turns if no costs are stored."""
    if costs is not None:
        return [TurnCost(*values) for values in orjson.loads(costs)]
    return turn_costs(unpack(turns or b"[]"))


def _turn(values: list[Any]) -> Turn:
    line, speaker, kind, text, at, record, group, tool, call, failed, reads, writes, active = values
    speaker, kind, reads, writes = _SPEAKERS[speaker], _KINDS[kind], tuple(reads), tuple(writes)
    return Turn(line, speaker, kind, text, at, record, group, tool, call, failed, reads, writes, active)


def _stored(row: Row) -> StoredExchange:
    key, session, source, ordinal, *lines, turns, started, ended, cwd, branch, tokens_in, tokens_out = row
    start_line, end_line, start_byte, end_byte = lines
    span = Span(start_line, end_line, start_byte, end_byte)
    exchange = Exchange(
        ordinal, span, unpack(turns), started, ended, cwd, branch, tokens_in=tokens_in, tokens_out=tokens_out
    )
    return StoredExchange(key, session, source, exchange)


class StoredItem(Struct, frozen=True):
    """Columns that all kinds of items have.

    `exchange` is the key of the exchange to which an observation belongs. For all other items, it equals `key`.
    `session` is 0 for an item without a conversation, such as a memory.
    """

    key: int
    kind: str
    session: int
    at: int | None
    exchange: int


class ItemTable:
    """Table of items of all kinds, for reading only."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def load(self, keys: Sequence[int]) -> dict[int, StoredItem]:
        """Return the items with these keys. Unknown keys are omitted."""
        rows = self._db.rows_among(
            f"""SELECT i.key, i.kind, coalesce(i.session, 0), i.at, coalesce(o.exchange, i.key)
                FROM item i LEFT JOIN observation o ON o.item = i.key WHERE i.key {AMONG}""",
            keys,
        )
        return {row[0]: StoredItem(*row) for row in rows}

    def kinds(self, keys: Sequence[int]) -> dict[int, str]:
        """Return the kind of each item. Unknown keys are omitted."""
        return dict(self._db.rows_among(f"SELECT key, kind FROM item WHERE key {AMONG}", keys))

    def issued(self, keys: Sequence[int]) -> set[int]:
        """Return the given keys that were issued or, after a restore, skipped (see `IdReservation`)."""
        last = self._db.number("SELECT max(seq) FROM sqlite_sequence WHERE name = 'item'")
        return {key for key in keys if 0 < key <= last}

    def of_sessions(self, numbers: Sequence[int]) -> list[int]:
        """Return the keys of all items of these sessions, in ascending order."""
        return self._db.numbers(f"SELECT key FROM item WHERE session {AMONG} ORDER BY key", (listed(numbers),))

    def all_keys(self) -> list[int]:
        """Return all keys, in ascending order."""
        return self._db.numbers("SELECT key FROM item ORDER BY key")
