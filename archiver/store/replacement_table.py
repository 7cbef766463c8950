"""Replacements: observations that a later observation of their session replaces."""

import json
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from .database import AMONG, Database, listed


class StoredReplacement(NamedTuple):
    """Pair of observations of one session: `later` replaces `earlier`. `line` is the line with the evidence."""

    earlier: int
    later: int
    line: int


class ReplacementTable:
    """Table of replaced observations."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, among: Collection[int], found: Iterable[StoredReplacement]) -> None:
        """Store replacements, after deleting the stored replacements of the observations `among`."""
        self._db.run(f"DELETE FROM replacement WHERE earlier {AMONG}", (listed(among),))
        self._db.run(
            """INSERT INTO replacement (earlier, later, line)
                   SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)""",
            (json.dumps([tuple(each) for each in found]),),
        )

    def of_observations(self, keys: Sequence[int]) -> dict[int, StoredReplacement]:
        """Map each of these observations to its replacement. Observations that are not replaced are omitted."""
        rows = self._db.rows_among(f"SELECT earlier, later, line FROM replacement WHERE earlier {AMONG}", keys)
        return {row[0]: StoredReplacement(*row) for row in rows}
