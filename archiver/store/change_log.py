"""Change log, table of published indexes, and table of stored vectors.

Search indexes read the change log to find changed items. Triggers in `schema/schema.sql` write most entries.

An item has one vector for each part of its text. Vectors are stored, because computing them takes time and requires
the model.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from msgspec import Struct

from .database import AMONG, Database, listed

CONTEXT_EXCHANGES: Final = 4
"""Maximum number of preceding exchanges whose text is added to the index entry of a short exchange.

The triggers in `schema/schema.sql` contain the same number.
"""
_PUBLICATIONS_KEPT: Final = 100
"""Number of published indexes whose tokens are kept. An older index is treated as the index of another archive."""


class Entity(StrEnum):
    """Kind of change to an item.

    `ITEM` is an insertion, a deletion, or a change to indexed content. `VECTOR` is a change to the vectors only.
    """

    ITEM = "item"
    VECTOR = "vector"


class ChangeLog:
    """Log of numbered entries. Each entry is written in the same transaction as its change.

    Numbers rise with every entry and are never reused. The last number that a reader has seen is its watermark.
    """

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


PARTS_MAX: Final = 256
"""Maximum number of parts into which the text of an item is split. Each part has its own vector."""
TOKEN_BYTES: Final = 16
"""Bytes per token embedding: 128 binary dimensions."""
PROMPT: Final = 0
"""Part number of the vector of an exchange's prompt. Vectors of the answer have higher part numbers."""

_BATCH: Final = 1_000
"""Number of items whose vectors `VectorTable.in_event_order` reads at once."""

_SELECT: Final = """SELECT v.item, coalesce(o.exchange, v.item), v.part, v.data, coalesce(t.bits, x'')
    FROM vector v LEFT JOIN observation o ON o.item = v.item
    LEFT JOIN token t ON t.item = v.item AND t.part = v.part"""


class Embedding(NamedTuple):
    """Embedding of a text: a vector and token embeddings.

    The vector is a little-endian float16 vector of unit length. `token_bits` contains `TOKEN_BYTES` bytes for each
    token, and is empty for models without token embeddings.
    """

    data: bytes
    token_bits: bytes = b""


class StoredVector(Struct, frozen=True):
    """Vector of one part of an item's text. `data` and `token_bits` have the same format as in `Embedding`.

    `event` is the key of the exchange to which an observation belongs. For all other items, it equals `item`.
    """

    item: int
    event: int
    part: int
    data: bytes
    token_bits: bytes = b""


class VectorTable:
    """Table of vectors, by item and model."""

    def __init__(self, database: Database, changes: ChangeLog) -> None:
        self._db, self._changes = database, changes

    def unembedded(self, model: str, limit: int) -> list[int]:
        """Return the keys of up to `limit` items without vectors of this model, newest first."""
        sql = "SELECT key FROM item WHERE embedded IS NOT ? ORDER BY key DESC LIMIT ?"
        return self._db.numbers(sql, (model, limit))

    def count_unembedded(self, model: str) -> int:
        """Count the items without vectors of this model."""
        return self._db.number("SELECT count(*) FROM item WHERE embedded IS NOT ?", (model,))

    def has(self, model: str) -> bool:
        """Return whether any item has vectors of this model."""
        return bool(self._db.number("SELECT EXISTS (SELECT 1 FROM vector WHERE model = ?)", (model,)))

    def waiting(self, model: str, items: Sequence[int]) -> list[int]:
        """Return those of the given items that have no vectors of this model, in ascending order."""
        return self._db.numbers(
            f"SELECT key FROM item WHERE embedded IS NOT ? AND key {AMONG} ORDER BY key", (model, listed(items))
        )

    def replace(self, model: str, vectors: dict[int, dict[int, Embedding]]) -> None:
        """Replace all vectors of each item. Items that were deleted in the meantime are skipped.

        `vectors` maps the keys of items to their embeddings by part number.
        """
        for item, parts in vectors.items():
            if not self._db.number("SELECT count(*) FROM item WHERE key = ?", (item,)):
                continue
            for table in ("token", "vector"):
                self._db.run(f"DELETE FROM {table} WHERE item = ?", (item,))
            self._db.run_many(
                "INSERT INTO vector (item, part, model, data) VALUES (?, ?, ?, ?)",
                [(item, part, model, embedded.data) for part, embedded in parts.items()],
            )
            self._db.run_many(
                "INSERT INTO token (item, part, bits) VALUES (?, ?, ?)",
                [(item, part, embedded.token_bits) for part, embedded in parts.items() if embedded.token_bits],
            )
            self._db.run("UPDATE item SET embedded = ? WHERE key = ?", (model, item))
            self._changes.log(Entity.VECTOR, [item])

    def of_items(self, model: str, items: Sequence[int]) -> list[StoredVector]:
        """Return all vectors of these items, sorted by item and part."""
        rows = self._db.rows(
            f"{_SELECT} WHERE v.model = ? AND v.item {AMONG} ORDER BY v.item, v.part", (model, listed(items))
        )
        return [StoredVector(*row) for row in rows]

    def in_event_order(self, model: str, items: Sequence[int] | None = None) -> Iterator[list[StoredVector]]:
        """Yield all vectors of a model, or those of the given items, in batches that are sorted by event and item."""
        condition, values = ("", ()) if items is None else (f"WHERE i.key {AMONG}", (listed(items),))
        keys = self._db.numbers(
            f"""SELECT i.key FROM item i LEFT JOIN observation o ON o.item = i.key {condition}
                ORDER BY coalesce(o.exchange, i.key), i.key""",
            values,
        )
        for start in range(0, len(keys), _BATCH):
            yield self.of_items(model, keys[start : start + _BATCH])

    def all(self, model: str) -> list[StoredVector]:
        """Return every vector of a model, sorted by item and part."""
        rows = self._db.rows(f"{_SELECT} WHERE v.model = ? ORDER BY v.item, v.part", (model,))
        return [StoredVector(*row) for row in rows]
