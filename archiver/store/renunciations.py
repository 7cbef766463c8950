"""Renunciations: what nothing is to be learned from, by the marks of what was said, as tombstones know it."""

import json
from collections.abc import Collection, Sequence
from typing import NamedTuple, cast

from .database import AMONG, Database, listed
from .observation_table import RENOUNCED


class Renunciation(NamedTuple):
    """What was renounced with one forgetting: what is of these `origins`, all of it where none is named."""

    forgetting: int
    origins: tuple[str, ...]


class Renunciations:
    """Reads and writes renunciations by mark. The caller opens the transaction."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def exist(self) -> bool:
        """Whether anything was renounced."""
        return bool(self._db.number("SELECT EXISTS (SELECT 1 FROM renunciation) OR EXISTS (SELECT 1 FROM renounced)"))

    def add(self, forgetting: int, marks: Collection[int], origins: Sequence[str]) -> None:
        """Have nothing learned from what has one of these marks, until the forgetting with this number is undone."""
        told = json.dumps(origins)
        self._db.run_many(
            "INSERT OR REPLACE INTO renunciation (mark, forgetting, origins) VALUES (?, ?, ?)",
            [(mark, forgetting, told) for mark in marks],
        )

    def of(self, marks: Collection[int]) -> set[Renunciation]:
        """Those by which what has these marks was renounced."""
        rows = self._db.rows(
            f"SELECT DISTINCT forgetting, origins FROM renunciation WHERE mark {AMONG}", (listed(marks),)
        )
        return {Renunciation(cast(int, number), tuple(json.loads(str(origins)))) for number, origins in rows}

    def told_with(self, forgetting: int) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """The marks of what was renounced with this forgetting, and the origins that are named."""
        rows = self._db.rows("SELECT mark, origins FROM renunciation WHERE forgetting = ? ORDER BY mark", (forgetting,))
        marks = tuple(cast(int, mark) for mark, _ in rows)
        return marks, tuple(json.loads(str(rows[0][1]))) if rows else ()

    def drop(self, forgetting: int) -> None:
        """Nothing was renounced with this forgetting."""
        self._db.run("DELETE FROM renunciation WHERE forgetting = ?", (forgetting,))
        self._db.run("DELETE FROM renounced WHERE forgetting = ?", (forgetting,))

    def exchanges(self) -> list[int]:
        """The exchanges from which nothing was learned for it."""
        return [
            cast(int, key) for (key,) in self._db.rows("SELECT item FROM exchange WHERE observed = ?", (RENOUNCED,))
        ]

    def unheeded(self, source: int) -> list[int]:
        """The exchanges of a source from which something was learned that nobody renounced."""
        rows = self._db.rows("SELECT item FROM exchange WHERE source = ? AND observed <> ?", (source, RENOUNCED))
        return [cast(int, key) for (key,) in rows]

    def placed(self) -> list[tuple[int, Renunciation]]:
        """What earlier versions knew by its place alone, by exchange, as far as that is there now."""
        rows = self._db.rows(
            """SELECT e.item, r.forgetting, r.origins FROM renounced r JOIN exchange e
               ON (r.source, r.start_line, r.size) = (e.source, e.start_line, length(e.turns))"""
        )
        return [
            (cast(int, key), Renunciation(cast(int, number), tuple(json.loads(str(origins)))))
            for key, number, origins in rows
        ]

    def unplace(self, exchange: int) -> None:
        """What was known by the place of this exchange is known by its marks now."""
        self._db.run(
            """DELETE FROM renounced WHERE (source, start_line) IN (
                   SELECT source, start_line FROM exchange WHERE item = ?
               )""",
            (exchange,),
        )
