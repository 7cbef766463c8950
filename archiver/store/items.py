"""Items: everything that can be found, of whatever kind, under one numbering."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from .database import Database


@dataclass(frozen=True, slots=True)
class StoredItem:
    """What all findable things have in common. `exchange` is the exchange an item lies in (itself for exchanges).

    What was not said in a conversation, such as a memory, has session 0.
    """

    key: int
    kind: str
    session: int
    at: int | None
    exchange: int


class Items:
    """Looks items up across kinds."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def load(self, keys: Sequence[int]) -> dict[int, StoredItem]:
        """The items with these keys; unknown keys are left out."""
        found: dict[int, StoredItem] = {}
        for start in range(0, len(keys), 500):
            part = tuple(keys[start : start + 500])
            marks = ",".join("?" * len(part))
            rows = self._db.rows(
                f"""SELECT i.key, i.kind, coalesce(i.session, 0), i.at, coalesce(o.exchange, i.key)
                    FROM item i LEFT JOIN observation o ON o.item = i.key WHERE i.key IN ({marks})""",
                part,
            )
            for key, kind, session, at, exchange in rows:
                found[cast(int, key)] = StoredItem(
                    cast(int, key), str(kind), cast(int, session), cast("int | None", at), cast(int, exchange)
                )
        return found

    def kinds(self, keys: Sequence[int]) -> dict[int, str]:
        """The kind of each of these items; unknown keys are left out."""
        found: dict[int, str] = {}
        for start in range(0, len(keys), 500):
            part = tuple(keys[start : start + 500])
            marks = ",".join("?" * len(part))
            rows = self._db.rows(f"SELECT key, kind FROM item WHERE key IN ({marks})", part)
            found |= {cast(int, key): str(kind) for key, kind in rows}
        return found

    def of_sessions(self, numbers: Sequence[int]) -> list[int]:
        """The keys of everything in these sessions, ascending."""
        rows = self._db.rows(
            "SELECT key FROM item WHERE session IN (SELECT value FROM json_each(?)) ORDER BY key",
            (json.dumps(list(numbers)),),
        )
        return [cast(int, row[0]) for row in rows]

    def all_keys(self) -> list[int]:
        """Every key, ascending."""
        return [cast(int, row[0]) for row in self._db.rows("SELECT key FROM item ORDER BY key")]
