"""Vectors of items, one for each part of an item's text.

Computing a vector takes time and requires the model. Therefore, the vectors are stored.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from .change_log import ChangeLog, Entity
from .database import AMONG, Database, listed

PARTS_MAX: Final = 256
"""Maximum number of parts into which the text of an item is split. Each part has its own vector."""
TOKEN_BYTES: Final = 16
"""Bytes per token embedding: 128 binary dimensions."""
PROMPT: Final = 0
"""Part number of the vector of an exchange's prompt. Vectors of the answer have higher part numbers."""

_SELECT: Final = """SELECT v.item, coalesce(o.exchange, v.item), v.part, v.data, coalesce(t.signs, x'')
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
                "INSERT INTO token (item, part, signs) VALUES (?, ?, ?)",
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

    def all(self, model: str) -> list[StoredVector]:
        """Return every vector of a model, sorted by item and part."""
        rows = self._db.rows(f"{_SELECT} WHERE v.model = ? ORDER BY v.item, v.part", (model,))
        return [StoredVector(*row) for row in rows]
