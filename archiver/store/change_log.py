"""The change log and the table of published indexes.

Search indexes read the change log to find changed items. Triggers write most entries
(`schema/0027_change_triggers.sql`).
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final, Protocol

from .database import AMONG, Database, listed

CONTEXT_EXCHANGES: Final = 4
"""Maximum number of preceding exchanges whose text is added to the index entry of a short exchange.

The triggers in `schema/0027_change_triggers.sql` contain the same number.
"""
_PUBLICATIONS_KEPT: Final = 100
"""Number of published indexes whose tokens are kept. An older index is treated as the index of another archive."""


class Entity(StrEnum):
    """Kind of change to an item.

    `ITEM` is an insertion, a deletion, or a change to indexed content. `VECTOR` is a change to the vectors only.
    """

    ITEM = "item"
    VECTOR = "vector"


class ChangeLog(Protocol):
    """Log of numbered entries. Each entry is written in the same transaction as its change.

    Numbers rise with every entry and are never reused. The last number that a reader has seen is its watermark.
    """

    def log(self, entity: Entity, items: Iterable[int]) -> None:
        """Append one entry for each item. The caller opens the transaction."""
        ...

    def last(self) -> int:
        """Return the number of the newest entry, or 0 for an empty log."""
        ...

    def since(self, seq: int, entities: Iterable[Entity] = ...) -> list[int]:
        """Return the keys of the items that changed after entry number `seq`, in ascending order.

        Keys of deleted items are included.
        """
        ...


class ChangeTable:
    """Change log stored in the table `change`."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def log(self, entity: Entity, items: Iterable[int]) -> None:
        """Append one entry for each item. The caller opens the transaction."""
        self._db.run_many("INSERT INTO change (entity, id) VALUES (?, ?)", [(entity, item) for item in items])

    def last(self) -> int:
        """Return the number of the newest entry, or 0 for an empty log."""
        return self._db.number("SELECT max(seq) FROM change")

    def since(self, seq: int, entities: Iterable[Entity] = tuple(Entity)) -> list[int]:
        """Return the keys of the items that changed after entry number `seq`, in ascending order.

        Keys of deleted items are included.
        """
        return self._db.numbers(
            f"SELECT DISTINCT id FROM change WHERE seq > ? AND entity {AMONG} ORDER BY id", (seq, listed(entities))
        )


class PublicationTable:
    """Table of the random tokens of the last published indexes.

    A token shows that an index was built from this store.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, token: str) -> None:
        """Record the token of an index that is about to be published."""
        number = self._db.run("INSERT INTO publication (token) VALUES (?)", (token,))
        self._db.run("DELETE FROM publication WHERE id <= ?", (number - _PUBLICATIONS_KEPT,))

    def is_empty(self) -> bool:
        """Return whether no index was published from this store."""
        return self._db.one("SELECT 1 FROM publication") is None

    def knows(self, token: str) -> bool:
        """Return whether the index with this token is one of the last indexes published from this store."""
        return self._db.one("SELECT 1 FROM publication WHERE token = ?", (token,)) is not None
