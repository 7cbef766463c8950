"""Tombstones: what was forgotten, by keyed marks that say nothing of it, and what is still to be done about it.

A forgetting is `kept` while it can be undone, `erasing` from the moment it is decided until the last byte is gone, and
`erased` afterwards. Its tombstones stay in every state.
"""

import json
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import cast

from ...core.conversation import Milliseconds
from .database import Database


class State(StrEnum):
    """How far a forgetting is."""

    KEPT = "kept"
    ERASING = "erasing"
    ERASED = "erased"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A forgetting: how many lines and records it is about, and when it was decided."""

    id: int
    at: Milliseconds
    state: State
    marks: int


class Tombstones:
    """Reads and writes forgettings. The caller opens the transaction."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def begin(self, at: Milliseconds, state: State, marks: Collection[int]) -> int:
        """Forget what has these marks; the number of the forgetting."""
        number = self._db.run("INSERT INTO forgetting (at, state) VALUES (?, ?)", (at, state))
        self._db.run_many("INSERT OR IGNORE INTO tombstone VALUES (?, ?)", [(mark, number) for mark in marks])
        return number

    def exist(self, *, erased: bool = False) -> bool:
        """Whether anything was forgotten, or erased."""
        wanted = "WHERE state <> 'kept'" if erased else ""
        return bool(self._db.number(f"SELECT EXISTS (SELECT 1 FROM forgetting {wanted})"))

    def known(self, marks: Collection[int], *, erased: bool = False, of: int | None = None) -> set[int]:
        """Those of these marks that were forgotten, or erased; by one forgetting alone where it is given."""
        wanted = "AND forgetting IN (SELECT id FROM forgetting WHERE state <> 'kept')" if erased else ""
        wanted += f" AND forgetting = {of:d}" if of is not None else ""
        rows = self._db.rows(
            f"SELECT DISTINCT mark FROM tombstone WHERE mark IN (SELECT value FROM json_each(?)) {wanted}",
            (json.dumps(list(marks)),),
        )
        return {cast(int, row[0]) for row in rows}

    def join(self, mark: int, others: Collection[int]) -> None:
        """What is known by this mark is to be known by the others, too."""
        self._db.run_many(
            "INSERT OR IGNORE INTO tombstone SELECT ?, forgetting FROM tombstone WHERE mark = ?",
            [(other, mark) for other in others],
        )

    def all(self) -> list[Forgotten]:
        """Every forgetting, newest first."""
        rows = self._db.rows(
            """SELECT id, at, state, (SELECT count(*) FROM tombstone WHERE forgetting = id)
               FROM forgetting ORDER BY id DESC"""
        )
        return [Forgotten(cast(int, row[0]), cast(int, row[1]), State(str(row[2])), cast(int, row[3])) for row in rows]

    def load(self, number: int) -> Forgotten | None:
        """The forgetting with this number."""
        return next((each for each in self.all() if each.id == number), None)

    def become(self, number: int, state: State) -> None:
        """A forgetting is in another state now."""
        self._db.run("UPDATE forgetting SET state = ? WHERE id = ?", (state, number))

    def undo(self, number: int) -> None:
        """Nothing was forgotten. Files of which nothing was left are looked at anew."""
        self._db.run("DELETE FROM tombstone WHERE forgetting = ?", (number,))
        self._db.run("DELETE FROM forgetting WHERE id = ?", (number,))
        self._db.run("DELETE FROM emptied")

    def intend(self, forgetting: int, copies: Mapping[str, bool]) -> None:
        """These copies are to lose what was erased; True where the whole copy is to go."""
        self._db.run_many(
            "INSERT OR REPLACE INTO erasure (archived, forgetting, whole) VALUES (?, ?, ?)",
            [(archived, forgetting, int(whole)) for archived, whole in copies.items()],
        )

    def intended(self) -> dict[str, bool]:
        """The copies that still hold what was erased; True where the whole copy is to go."""
        return {str(name): bool(whole) for name, whole in self._db.rows("SELECT archived, whole FROM erasure")}

    def unfinished(self) -> set[int]:
        """The forgettings of which a copy still is to be cleaned."""
        return {cast(int, number) for (number,) in self._db.rows("SELECT DISTINCT forgetting FROM erasure")}

    def cleaned(self, archived: Iterable[str]) -> None:
        """These copies hold nothing of it any more."""
        self._db.run_many("DELETE FROM erasure WHERE archived = ?", [(name,) for name in archived])

    def keep_emptied(self, mark: int, mtime: int, size: int) -> None:
        """A file says nothing but what was forgotten, as long as it is as it is."""
        self._db.run("INSERT OR REPLACE INTO emptied VALUES (?, ?, ?)", (mark, mtime, size))

    def is_emptied(self, mark: int, mtime: int, size: int) -> bool:
        """Whether a file was found to say nothing but what was forgotten, and did not change since."""
        return (
            self._db.one("SELECT 1 FROM emptied WHERE (mark, mtime, size) = (?, ?, ?)", (mark, mtime, size)) is not None
        )

    def erase_rows(self, sessions: Collection[int], sources: Collection[int], exchanges: Collection[int]) -> None:
        """Remove every row that names these sessions, files and exchanges. Costs of calls stay, and their sums."""
        for source in sources:
            path = self._db.one("SELECT path FROM source WHERE id = ?", (source,))
            self._db.run("DELETE FROM record WHERE source = ?", (source,))
            self._db.run("DELETE FROM item WHERE key IN (SELECT item FROM exchange WHERE source = ?)", (source,))
            self._db.run("DELETE FROM source WHERE id = ?", (source,))
            if path is not None:
                self._erase_path(cast(bytes, path[0]))
        self._db.run_many("DELETE FROM item WHERE session = ?", [(session,) for session in sessions])
        self._db.run_many(
            "DELETE FROM session WHERE id = ? AND id NOT IN (SELECT session FROM source WHERE session NOT NULL)",
            [(session,) for session in sessions],
        )
        self._db.run_many("UPDATE call SET exchange = 0, digest = '' WHERE exchange = ?", [(key,) for key in exchanges])

    def _erase_path(self, path: bytes) -> None:
        self._db.run("DELETE FROM problem WHERE path = ?", (path,))
        shown = str(Path(os.fsdecode(path)))
        self._db.run("UPDATE stage SET problem = 'about a file that was erased' WHERE instr(problem, ?)", (shown,))

    def erase_records(self, records: Collection[str]) -> None:
        """Remove the ids of these records."""
        self._db.run("DELETE FROM record WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(records)),))

    def sent(self, exchanges: Collection[int]) -> int:
        """How many of these exchanges were sent to a language model."""
        return self._db.number(
            """SELECT count(DISTINCT exchange) FROM call
               WHERE state <> 'released' AND exchange IN (SELECT value FROM json_each(?))""",
            (json.dumps(list(exchanges)),),
        )

    def reread(self, sources: Collection[int]) -> None:
        """These sources are to be read again from their copies."""
        self._db.run_many("UPDATE source SET rules = '' WHERE id = ?", [(source,) for source in sources])

    def compact(self, *, whole: bool) -> bool:
        """Empty the write-ahead log, and write the `whole` file anew; False while another process is reading."""
        if whole:
            self._db.run("VACUUM")
        row = self._db.one("PRAGMA wal_checkpoint(TRUNCATE)")
        return row is not None and row[0] == 0
