"""Vectors: kept as truth, because making them again costs minutes and needs the model."""

from collections.abc import Sequence
from typing import NamedTuple, cast

from msgspec import Struct

from .change_log import ChangeTable, Entity
from .database import AMONG, Database, Row, listed

PARTS_MAX = 256
"""An item has at most this many vectors."""
TOKEN_BYTES = 16
"""What is kept of each token of a text: the signs of 128 numbers."""
PROMPT = 0
"""The part of an exchange that the person asked; what was answered follows."""


class Embedded(NamedTuple):
    """What a text means: little-endian float16 numbers of unit length, and the signs of its tokens, `TOKEN_BYTES` each;
    none where the model does not tell them.
    """

    data: bytes
    signs: bytes = b""


class StoredVector(Struct, frozen=True):
    """One embedded text of an item. `data` and `signs` are those of `Embedded`.

    `event` is the exchange that the item belongs to; part 0 of an exchange is what the person asked.
    """

    item: int
    event: int
    part: int
    data: bytes
    signs: bytes = b""


class VectorTable:
    """Reads and writes vectors by item and model."""

    def __init__(self, database: Database, changes: ChangeTable) -> None:
        self._db, self._changes = database, changes

    def unembedded(self, model: str, limit: int) -> list[int]:
        """Keys of items that have no vectors of this model yet, newest first."""
        rows = self._db.rows("SELECT key FROM item WHERE embedded IS NOT ? ORDER BY key DESC LIMIT ?", (model, limit))
        return [cast(int, row[0]) for row in rows]

    def count_unembedded(self, model: str) -> int:
        """How many items wait for the embedder."""
        return self._db.number("SELECT count(*) FROM item WHERE embedded IS NOT ?", (model,))

    def waiting(self, model: str, items: Sequence[int]) -> list[int]:
        """Those of these items that have no vectors of this model yet, ascending."""
        rows = self._db.rows(
            f"SELECT key FROM item WHERE embedded IS NOT ? AND key {AMONG} ORDER BY key", (model, listed(items))
        )
        return [cast(int, row[0]) for row in rows]

    def replace(self, model: str, vectors: dict[int, dict[int, Embedded]]) -> None:
        """Give each item these vectors, by part, and no others. Items that vanished meanwhile are passed over."""
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
                "INSERT INTO token (item, part, signs) VALUES (?, ?, ?)",
                [(item, part, embedded.signs) for part, embedded in parts.items() if embedded.signs],
            )
            self._db.run("UPDATE item SET embedded = ? WHERE key = ?", (model, item))
            self._changes.log(Entity.VECTOR, [item])

    def of_items(self, model: str, items: Sequence[int]) -> list[StoredVector]:
        """All vectors of these items, by item and part."""
        rows = self._db.rows(
            f"{_SELECT} WHERE v.model = ? AND v.item {AMONG} ORDER BY v.item, v.part", (model, listed(items))
        )
        return [_stored(row) for row in rows]

    def all(self, model: str) -> list[StoredVector]:
        """Every vector of a model, by item and part."""
        return [_stored(row) for row in self._db.rows(f"{_SELECT} WHERE v.model = ? ORDER BY v.item, v.part", (model,))]


_SELECT = """SELECT v.item, coalesce(o.exchange, v.item), v.part, v.data, coalesce(t.signs, x'')
    FROM vector v LEFT JOIN observation o ON o.item = v.item
    LEFT JOIN token t ON t.item = v.item AND t.part = v.part"""


def _stored(row: Row) -> StoredVector:
    item, event, part = (cast(int, value) for value in row[:3])
    return StoredVector(item, event, part, cast(bytes, row[3]), cast(bytes, row[4]))
