"""Items: all searchable content of every kind. All kinds share one sequence of IDs."""

from collections.abc import Sequence

from msgspec import Struct

from .database import AMONG, Database, listed


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
