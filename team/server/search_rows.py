"""Rows of the search: entries, term counts and vectors of shared items, written in the transaction of a push.

The windows of text, the stems and the values of filters are those of the index of a machine.
"""

from __future__ import annotations

from base64 import b64decode
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias
from uuid import UUID

import numpy as np
from msgspec import Raw, Struct, json
from psycopg import Connection

from ...archiver.store import StoredExchange, StoredObservation
from ...archiver.store.change_log import CONTEXT_EXCHANGES
from ...core.conversation import Exchange, Session, Span
from ...core.memory import Memory, MemoryState, MemoryStats, StoredMemory
from ...core.observation import Observation
from ...search.index import indexed_texts
from ...search.index.text_index import TextEntry
from ...search.query.tokenizer import expand, stems
from ..protocol import ItemKind, SharedItem, SharedProject, SharedVector

Database: TypeAlias = Connection[tuple[Any, ...]]

ALL: Final = ""
STEMS: Final = " "
"""Terms whose counts are the number of entries of a team, and the number of stems in these entries."""
DIMENSION: Final = 384
"""Length of the vectors that are stored. Items with other vectors are found by their words only."""
LABEL_MAX: Final = 500
"""Maximum number of characters of a label. PostgreSQL refuses terms of 2 KB."""
_PART_MAX: Final = (1 << 15) - 1
_NO_EXCHANGE: Final = Exchange(0, Span(0, 0, 0, 0), (), None, None)


class _Row(Struct, frozen=True):
    """Row of an item that was pushed: its key, the ID of its owner, and who may see it."""

    key: int
    person: UUID
    visibility: int


def store(connection: Database, team: UUID, items: Sequence[SharedItem], model: str = "") -> None:
    """Replace the rows of these items, which the table of items must contain. Usage has no rows.

    An observation can arrive before its exchange: it is then an event of its own until the exchange arrives.

    Args:
        connection: Connection within the transaction of the push.
        team: ID of the team.
        items: Items of the batch.
        model: Name of the embedding model that computed the vectors.
    """
    texts = [item for item in items if item.kind not in {ItemKind.USAGE, ItemKind.SESSION}]
    if not texts:
        return
    batch = _Items(connection, team, items)
    keys = [batch.rows[item.id].key for item in texts]
    later = _with_context_of(connection, team, keys)
    _delete(connection, team, keys)
    order = {ItemKind.EXCHANGE: 0, ItemKind.OBSERVATION: 1, ItemKind.MEMORY: 2}
    entries = [
        (batch.rows[item.id], batch.session_key(item), item.path, entry, context)
        for item in sorted(texts, key=lambda item: order[item.kind])
        for entry, context in batch.entries(item)
    ]
    _insert(connection, team, entries, model)
    _renew_context(connection, team, later)
    _insert_vectors(connection, team, model, [(batch.rows[item.id], batch.event(item), item) for item in texts])
    _adopt(connection, team, batch)


def check_vectors(item: SharedItem) -> None:
    """Raise `ValueError` for vectors that cannot be stored."""
    parts = {vector.part for vector in item.vectors}
    if len(parts) != len(item.vectors) or not all(0 <= part <= _PART_MAX for part in parts):
        raise ValueError
    for vector in item.vectors:
        _numbers(vector)
        b64decode(vector.token_bits)


def delete(connection: Database, team: UUID, keys: Sequence[int]) -> None:
    """Delete the rows of the items with these keys, and their text in the additional windows of other exchanges."""
    later = _with_context_of(connection, team, keys)
    _delete(connection, team, keys)
    _renew_context(connection, team, later)


class _Items:
    """Items of a batch, with what their entries need of other items."""

    def __init__(self, connection: Database, team: UUID, items: Sequence[SharedItem]) -> None:
        self._connection, self._team = connection, team
        self.items = {item.id: item for item in items}
        names = {name for item in items for name in (item.id, item.session, item.event) if name}
        found = connection.execute(
            "SELECT id, key, person, visibility FROM palaver.item WHERE team = %s AND id = ANY(%s)",
            (team, [UUID(name) for name in names]),
        )
        self.rows = {str(name): _Row(key, person, visibility) for name, key, person, visibility in found}
        self._bodies = self._load({name for item in items for name in (item.id, item.session, item.event) if name})
        self._sessions = dict[str, Session]()
        self._exchanges = dict[str, Exchange]()
        self._texts = self._preceding_texts()

    def _load(self, names: set[str]) -> dict[str, bytes]:
        """Return the bodies of these items, from the batch or the table."""
        missing = [UUID(name) for name in names - self.items.keys()]
        rows = self._connection.execute(
            "SELECT id, body FROM palaver.item WHERE team = %s AND id = ANY(%s)", (self._team, missing)
        )
        bodies = {str(name): body for name, body in rows}
        return bodies | {name: bytes(self.items[name].body) for name in names & self.items.keys()}

    def session_key(self, item: SharedItem) -> int:
        """Return the key of the session of an item, or 0 without a session."""
        return self.rows[item.session].key if item.session in self.rows else 0

    def event(self, item: SharedItem) -> int:
        """Return the key of the event of an item."""
        return self.rows[item.event].key if item.event in self.rows else self.rows[item.id].key

    def session(self, item: SharedItem) -> Session:
        """Return the session of an item. A session that is not shared has only a project."""
        if item.session not in self._sessions:
            body = self._bodies.get(item.session)
            session = json.decode(body, type=Session) if body else Session("", item.session)
            session.project = item.project.name
            self._sessions[item.session] = session
        return self._sessions[item.session]

    def exchange(self, name: str) -> Exchange:
        """Return an exchange, or an empty one if it is not shared."""
        if name not in self._exchanges:
            body = self._bodies.get(name)
            self._exchanges[name] = json.decode(body, type=Exchange) if body else _NO_EXCHANGE
        return self._exchanges[name]

    def entries(self, item: SharedItem) -> Iterator[tuple[TextEntry, bool]]:
        """Yield the entries of an item, and True for the additional window of a short exchange."""
        key, session = self.rows[item.id].key, self.session_key(item)
        if item.kind is ItemKind.MEMORY:
            memory, at = json.decode(item.body, type=Memory), item.at or 0
            stored = StoredMemory(key, memory, MemoryStats(), MemoryState.ACTIVE, at, at)
            yield from ((entry, False) for entry in indexed_texts.memory_entries(stored))
        elif item.kind is ItemKind.EXCHANGE:
            exchange = self.exchange(item.id)
            own = list(indexed_texts.windows(exchange))
            windows = indexed_texts.extended(own, self._before(item, exchange))
            parsed = StoredExchange(key, session, 0, exchange)
            entries = indexed_texts.exchange_entries(parsed, (), self.session(item), windows)
            yield from ((entry, number >= len(own)) for number, entry in enumerate(entries))
        else:
            observation = json.decode(item.body, type=Observation)
            parent = StoredExchange(self.event(item), session, 0, self.exchange(item.event))
            learned = StoredObservation(key, self.event(item), session, observation, 0)
            yield indexed_texts.observation_entry(learned, parent, self.session(item)), False

    def _before(self, item: SharedItem, exchange: Exchange) -> Iterator[str]:
        for back in range(1, CONTEXT_EXCHANGES + 1):
            text = self._texts.get((item.session, item.path, exchange.ordinal - back))
            if text is None:
                return
            yield text

    def _preceding_texts(self) -> dict[tuple[str, str, int], str]:
        """Map session, path and ordinal to the text of the exchanges of the batch, and of those before them."""
        exchanges = [item for item in self.items.values() if item.kind is ItemKind.EXCHANGE]
        texts, missing = dict[tuple[str, str, int], str](), set[tuple[str, str, int]]()
        for item in exchanges:
            exchange = self.exchange(item.id)
            said = "\n".join(window.text for window in indexed_texts.windows(exchange))
            texts[item.session, item.path, exchange.ordinal] = said
            earlier = range(max(0, exchange.ordinal - CONTEXT_EXCHANGES), exchange.ordinal)
            missing.update((item.session, item.path, ordinal) for ordinal in earlier)
        missing = {place for place in missing - texts.keys() if place[0] in self.rows}
        if missing:
            names = {self.rows[session].key: session for session, _, _ in missing}
            rows = self._connection.execute(
                """SELECT session, path, ordinal, string_agg(body, E'\n' ORDER BY start_line, id) FROM palaver.entry
                WHERE team = %s AND session = ANY(%s) AND ordinal = ANY(%s) AND item = event AND NOT context
                GROUP BY session, path, ordinal""",
                (self._team, [*names], sorted({ordinal for _, _, ordinal in missing})),
            )
            texts |= {(names[session], path, ordinal): body for session, path, ordinal, body in rows}
        return texts


def _delete(connection: Database, team: UUID, keys: Sequence[int]) -> None:
    gone = connection.execute(
        "DELETE FROM palaver.entry WHERE team = %s AND item = ANY(%s) RETURNING stems", (team, [*keys])
    ).fetchall()
    connection.execute("DELETE FROM palaver.embedding WHERE team = %s AND item = ANY(%s)", (team, [*keys]))
    _count_stems(connection, team, -1, [row[0].split() for row in gone])


def _with_context_of(connection: Database, team: UUID, keys: Sequence[int]) -> list[int]:
    """Return the keys of other exchanges whose additional window can contain text of these items."""
    rows = connection.execute(
        """SELECT DISTINCT later.item FROM palaver.entry AS said JOIN palaver.entry AS later
            ON later.session = said.session AND later.path = said.path AND later.person = said.person
            AND later.ordinal BETWEEN said.ordinal + 1 AND said.ordinal + %s
        WHERE said.team = %s AND later.team = %s AND said.item = ANY(%s) AND said.item = said.event
            AND said.path <> '' AND NOT said.context AND later.context AND NOT later.item = ANY(%s)""",
        (CONTEXT_EXCHANGES, team, team, [*keys], [*keys]),
    )
    return [row[0] for row in rows]


def _renew_context(connection: Database, team: UUID, keys: Sequence[int]) -> None:
    """Replace the additional windows of these exchanges."""
    if not keys:
        return
    old = connection.execute(
        "DELETE FROM palaver.entry WHERE team = %s AND item = ANY(%s) AND context RETURNING stems, model",
        (team, [*keys]),
    ).fetchall()
    _count_stems(connection, team, -1, [words.split() for words, _ in old])
    rows = connection.execute(
        """SELECT id::text, seq, project_id, project, hash, body, coalesce(session::text, ''), event::text, at, path
        FROM palaver.item WHERE team = %s AND key = ANY(%s) ORDER BY key""",
        (team, [*keys]),
    )
    exchanges = [
        SharedItem(name, ItemKind.EXCHANGE, seq, SharedProject(project, label), hashed, Raw(body), *place)
        for name, seq, project, label, hashed, body, *place in rows
    ]
    batch = _Items(connection, team, exchanges)
    entries = [
        (batch.rows[item.id], batch.session_key(item), item.path, entry, context)
        for item in exchanges
        for entry, context in batch.entries(item)
        if context
    ]
    _insert(connection, team, entries, old[0][1] if old else "")


def _insert(
    connection: Database, team: UUID, entries: Sequence[tuple[_Row, int, str, TextEntry, bool]], model: str
) -> None:
    """Insert entries, and count their terms."""
    stemmed = [stems(expand(entry.body)) for *_, entry, _ in entries]
    with connection.cursor() as cursor:
        cursor.executemany(
            """INSERT INTO palaver.entry (team, item, event, session, person, visibility, path, ordinal, at, start_line,
                end_line, context, body, said, stems, length, model, tsv)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s::tsvector)""",
            [
                (
                    team,
                    row.key,
                    entry.event,
                    session,
                    row.person,
                    row.visibility,
                    path,
                    entry.ordinal,
                    entry.at,
                    entry.start_line,
                    entry.end_line,
                    context,
                    entry.body,
                    json.encode(entry.said).decode(),
                    spread(words),
                    len(words),
                    model,
                    _tsvector(words, labels_of(entry)),
                )
                for (row, session, path, entry, context), words in zip(entries, stemmed, strict=True)
            ],
        )
    _count_stems(connection, team, 1, stemmed)


def _count_stems(connection: Database, team: UUID, sign: int, entries: Sequence[Sequence[str]]) -> None:
    """Add the terms of these entries to the counts of the team, or subtract them. Delete terms without entries."""
    if not entries:
        return
    counts = Counter(term for words in entries for term in set(words))
    counts[ALL], counts[STEMS] = len(entries), sum(map(len, entries))
    # Pushes of one team lock the terms in the same order, so that they do not wait for each other in a circle.
    terms = sorted(counts)
    connection.execute(
        """INSERT INTO palaver.term AS t (team, term, entries)
        SELECT %s, term, entries FROM unnest(%s::text[], %s::bigint[]) AS counted (term, entries)
        ON CONFLICT (team, term) DO UPDATE SET entries = t.entries + excluded.entries""",
        (team, terms, [sign * counts[term] for term in terms]),
    )
    if sign < 0:
        connection.execute(
            "DELETE FROM palaver.term WHERE team = %s AND term = ANY(%s) AND entries <= 0", (team, terms)
        )


def _insert_vectors(
    connection: Database, team: UUID, model: str, items: Iterable[tuple[_Row, int, SharedItem]]
) -> None:
    with connection.cursor() as cursor:
        cursor.executemany(
            """INSERT INTO palaver.embedding (team, item, event, part, person, visibility, model, vec, bits)
            VALUES (%s, %s, %s, %s, %s, %s, %s, %s::halfvec, %s)""",
            [
                (
                    team,
                    row.key,
                    event,
                    vector.part,
                    row.person,
                    row.visibility,
                    model,
                    as_text(numbers),
                    b64decode(vector.token_bits),
                )
                for row, event, item in items
                for vector in item.vectors
                for numbers in [_numbers(vector)]
                if len(numbers) == DIMENSION and np.isfinite(numbers).all() and numbers.any()
            ],
        )


def _adopt(connection: Database, team: UUID, batch: _Items) -> None:
    """Give observations that arrived before their exchanges to the exchanges of this batch."""
    exchanges = [UUID(item.id) for item in batch.items.values() if item.kind is ItemKind.EXCHANGE]
    for table in ("entry", "embedding"):
        connection.execute(
            f"""UPDATE palaver.{table} AS row SET event = parent.key
            FROM palaver.item child, palaver.item parent
            WHERE row.team = %(team)s AND child.team = %(team)s AND parent.team = %(team)s
                AND parent.id = ANY(%(exchanges)s) AND child.event = parent.id AND row.item = child.key
                AND row.event <> parent.key""",
            {"team": team, "exchanges": exchanges},
        )


def labels_of(entry: TextEntry) -> Iterator[str]:
    """Yield the labels of an entry for the filters, and for the roles of its text."""
    for name, values in entry.values.items():
        yield from (label_of(name, value) for value in values)
    for role, _ in entry.said:
        yield label_of("role", role)


def label_of(name: str, value: str) -> str:
    """Return the term that represents a value of a filter."""
    return f"{name}:{value}"[:LABEL_MAX]


def spread(words: Sequence[str]) -> str:
    """Return stems as the table stores them. Each stem is between two spaces, so that `str.count` counts it."""
    return f" {'  '.join(words)} "


def quoted(term: str) -> str:
    """Return a term as a quoted term of a `tsvector` or a `tsquery`."""
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"


def as_text(vector: np.typing.NDArray[Any]) -> str:
    """Return a vector in the text format of pgvector."""
    return "[" + ",".join(map(repr, vector.tolist())) + "]"


def as_array(numbers: Iterable[int]) -> str:
    """Return an array in the text format of PostgreSQL. psycopg takes 5 us a number."""
    return f"{{{','.join(map(str, numbers))}}}"


def _tsvector(words: Sequence[str], labels: Iterable[str]) -> str:
    places: dict[str, list[int]] = {}
    for position, word in enumerate(words, 1):
        places.setdefault(word, []).append(position)
    terms = [f"{quoted(word)}:{','.join(map(str, at))}" for word, at in places.items()]
    return " ".join([*terms, *map(quoted, dict.fromkeys(labels))])


def _numbers(vector: SharedVector) -> np.typing.NDArray[np.float16]:
    return np.frombuffer(b64decode(vector.data), dtype="<f2")
