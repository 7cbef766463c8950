"""The change log: the only way an index learns anything. Triggers write most of it (`change_triggers.py`)."""

from collections.abc import Iterable
from enum import StrEnum

from .database import Database


class Entity(StrEnum):
    """What changed about an item: its text (and so everything derived from it), or its vectors alone."""

    ITEM = "item"
    VECTOR = "vector"


class Changes:
    """Numbered entries, written in the same transaction as what they tell of. Numbers are never reused."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def log(self, entity: Entity, items: Iterable[int]) -> None:
        """Note that these items changed."""
        self._db.run_many("INSERT INTO change (entity, id) VALUES (?, ?)", [(entity, item) for item in items])

    def last(self) -> int:
        """The number of the newest entry; 0 for an empty log."""
        return self._db.number("SELECT max(seq) FROM change")

    def since(self, seq: int, entities: Iterable[Entity] = (Entity.ITEM, Entity.VECTOR)) -> list[int]:
        """The items with entries after `seq`, each once, in key order. They may no longer exist."""
        marks = [str(entity) for entity in entities]
        rows = self._db.rows(
            f"SELECT DISTINCT id FROM change WHERE seq > ? AND entity IN ({','.join('?' * len(marks))}) ORDER BY id",
            (seq, *marks),
        )
        return [int(str(row[0])) for row in rows]
