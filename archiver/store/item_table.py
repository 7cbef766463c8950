"""Items: everything that can be found, of whatever kind, under one numbering."""

from collections.abc import Sequence
from typing import cast

from msgspec import Struct

from .database import AMONG, Database, listed


class StoredItem(Struct, frozen=True):
    """What all findable things have in common. `exchange` is the exchange an item lies in (itself for exchanges).

    What was not said in a conversation, such as a memory, has session 0.
    """

    key: int
    kind: str
    session: int
    at: int | None
    exchange: int


class ItemTable:
    """Looks items up across kinds."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def load(self, keys: Sequence[int]) -> dict[int, StoredItem]:
        """The items with these keys; unknown keys are left out."""
        rows = self._db.rows_among(
            f"""SELECT i.key, i.kind, coalesce(i.session, 0), i.at, coalesce(o.exchange, i.key)
                FROM item i LEFT JOIN observation o ON o.item = i.key WHERE i.key {AMONG}""",
            keys,
        )
        return {cast(int, row[0]): StoredItem(*cast("tuple[int, str, int, int | None, int]", row)) for row in rows}

    def kinds(self, keys: Sequence[int]) -> dict[int, str]:
        """The kind of each of these items; unknown keys are left out."""
        rows = self._db.rows_among(f"SELECT key, kind FROM item WHERE key {AMONG}", keys)
        return {cast(int, key): str(kind) for key, kind in rows}

    def given(self, keys: Sequence[int]) -> set[int]:
        """Those of these keys that an item has or can have had.

        A database that was made anew or put back left out keys that the one before it had reserved: see `numbering`.
        """
        last = self._db.number("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'item'")
        return {key for key in keys if 0 < key <= last}

    def of_sessions(self, numbers: Sequence[int]) -> list[int]:
        """The keys of everything in these sessions, ascending."""
        rows = self._db.rows(f"SELECT key FROM item WHERE session {AMONG} ORDER BY key", (listed(numbers),))
        return [cast(int, row[0]) for row in rows]

    def all_keys(self) -> list[int]:
        """Every key, ascending."""
        return [cast(int, row[0]) for row in self._db.rows("SELECT key FROM item ORDER BY key")]
