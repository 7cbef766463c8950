"""Shared items as a search shows them, loaded in few statements.

The body of an exchange has 19 KB on average, which is most of what a page would read. So it is loaded only for
exchanges that are shown, and everything else of an item before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, LiteralString
from uuid import UUID

from msgspec import Struct, json

from ...core.conversation import Exchange, Session
from ..protocol import ItemKind
from .database import Database
from .search_rows import as_array


class Item(Struct, frozen=True):
    """Shared item. `body` is empty for an exchange, see `SharedItems.exchanges`."""

    key: int
    id: UUID
    kind: str
    event_id: UUID | None
    session_id: UUID | None
    person: str
    project: str
    path: str
    at: int | None
    body: bytes

    @property
    def label(self) -> str:
        """Project and person."""
        return f"{self.project} ({self.person})"


_COLUMNS: Final = """i.key, i.id, i.kind, i.event, i.session, p.name, i.project, i.path, i.at,
        CASE i.kind WHEN 'exchange' THEN ''::bytea ELSE i.body END"""
_SELECT: Final = f"""SELECT {_COLUMNS} FROM palaver.item i JOIN palaver.person p ON p.team = i.team AND p.id = i.person
    WHERE i.team = %(team)s"""
_WITH_RELATED: Final = f"""WITH own AS MATERIALIZED (
        SELECT * FROM palaver.item WHERE team = %(team)s AND key = ANY(%(keys)s)),
    learned AS MATERIALIZED (
        SELECT i.* FROM own JOIN palaver.item i ON i.event = own.id
        WHERE i.team = %(team)s AND i.kind = 'observation' AND own.kind = 'exchange'),
    i AS (
        SELECT * FROM own UNION ALL SELECT * FROM learned UNION ALL
        SELECT * FROM palaver.item
        WHERE team = %(team)s AND id IN (SELECT session FROM own UNION SELECT session FROM learned))
    SELECT {_COLUMNS} FROM i JOIN palaver.person p ON p.team = %(team)s AND p.id = i.person"""


class SharedItems:
    """Items that one search has loaded. Methods that take an item use what was loaded with it."""

    def __init__(self, connection: Database, team: UUID) -> None:
        self._connection, self._team = connection, team
        self._by_key: dict[int, Item] = {}
        self._by_id: dict[UUID, Item] = {}
        self._learned: dict[UUID, dict[int, Item]] = {}
        """Observations by the ID of their exchange, and by their key."""
        self._exchanges: dict[int, Exchange] = {}
        self._sessions: dict[UUID, Session] = {}

    def load(self, keys: Sequence[int]) -> None:
        """Load the items with these keys, the observations of those that are exchanges, and the sessions of all."""
        self._add(_WITH_RELATED, keys=as_array(keys))

    def of_keys(self, keys: Iterable[int]) -> dict[int, Item]:
        """Return the items with these keys, each with its exchange and its session."""
        listed = [*keys]
        if missing := [key for key in listed if key not in self._by_key]:
            self._add_related(self._select("AND i.key = ANY(%(keys)s)", keys=as_array(missing)))
        return {key: self._by_key[key] for key in listed if key in self._by_key}

    def of_ids(self, names: Sequence[UUID]) -> list[Item]:
        """Return the items with these IDs, each with its exchange and its session."""
        return self._add_related(self._select("AND i.id = ANY(%(names)s)", names=[*names]))

    def keys_of(self, person: UUID, keys: Sequence[int]) -> set[int]:
        """Return those of these keys whose items a person shares."""
        rows = self._connection.execute(
            "SELECT key FROM palaver.item WHERE team = %s AND person = %s AND key = ANY(%s)",
            (self._team, person, [*keys]),
        )
        return {key for (key,) in rows}

    def observations_in(self, sessions: Iterable[int]) -> list[Item]:
        """Return all observations of these sessions."""
        names = [item.id for item in self.of_keys(sessions).values()]
        return self._select("AND i.session = ANY(%(names)s) AND i.kind = 'observation'", names=names)

    def exchanges_in(self, session: UUID, path: str) -> list[Item]:
        """Return the exchanges of a transcript, with their session."""
        conditions = "AND i.session = %(session)s AND i.path = %(path)s AND i.kind = 'exchange'"
        return self._add_related(self._select(conditions, session=session, path=path))

    def observations_of(self, item: Item) -> list[Item]:
        """Return the observations of an exchange of `load`, in the order in which they were shared."""
        learned = self._learned.get(item.id, {})
        return [learned[key] for key in sorted(learned)]

    def event_of(self, item: Item) -> Item:
        """Return the exchange of an observation if it is shared, and otherwise the item."""
        return self._by_id.get(item.event_id, item) if item.event_id else item

    def session_key(self, item: Item) -> int:
        """Return the key of the session of an item, or 0 if it is not shared."""
        session = self._by_id.get(item.session_id) if item.session_id else None
        return session.key if session else 0

    def session_of(self, item: Item) -> Session:
        """Return the session of an item, which is empty if it is not shared."""
        shared = self._by_id.get(item.session_id) if item.session_id else None
        if shared is None:
            return Session("", "")
        if shared.id not in self._sessions:
            self._sessions[shared.id] = json.decode(shared.body, type=Session)
        return self._sessions[shared.id]

    def path_of(self, item: Item) -> str:
        """Return the path of the transcript of an item, or an empty text without one."""
        path = item.path or self.event_of(item).path
        return f"{item.session_id}/{path}" if item.session_id and path else ""

    def exchanges(self, keys: Iterable[int]) -> dict[int, Exchange]:
        """Return the exchanges among the loaded items with these keys."""
        listed = [key for key in keys if self._by_key[key].kind == ItemKind.EXCHANGE]
        if missing := [key for key in listed if key not in self._exchanges]:
            rows = self._connection.execute(
                "SELECT key, body FROM palaver.item WHERE team = %s AND key = ANY(%s)",
                (self._team, as_array(missing)),
                binary=True,
            ).fetchall()
            self._exchanges |= {key: json.decode(body, type=Exchange) for key, body in rows}
        return {key: self._exchanges[key] for key in listed if key in self._exchanges}

    def _add_related(self, items: list[Item]) -> list[Item]:
        """Load the exchanges and the sessions of these items. Return the items."""
        names = {name for item in items for name in (item.event_id, item.session_id) if name} - self._by_id.keys()
        if names:
            self._select("AND i.id = ANY(%(names)s)", names=[*names])
        return items

    def _select(self, conditions: LiteralString, **values: Any) -> list[Item]:
        return self._add(f"{_SELECT} {conditions}", **values)

    def _add(self, statement: LiteralString, **values: Any) -> list[Item]:
        rows = self._connection.execute(statement, {"team": self._team, **values}, binary=True).fetchall()
        items = [Item(*row) for row in rows]
        for item in items:
            self._by_key[item.key] = self._by_id[item.id] = item
            if item.kind == ItemKind.OBSERVATION and item.event_id:
                self._learned.setdefault(item.event_id, {})[item.key] = item
        return items
