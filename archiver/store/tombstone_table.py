"""TombstoneTable: what was forgotten, by keyed marks that say nothing of it, and what is still to be done about it.

A forgetting is `kept` while it can be undone, `erasing` from the moment it is decided until the last byte is gone, and
`erased` afterwards. Its tombstones stay in every state, and stand in the register as well (`register.py`).
"""

import json
import os
from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import asdict

from ...core.conversation import Milliseconds
from ...core.deletion import NO_SUMMARY, DeletionSummary
from ...core.errors import StoreError
from ...core.home import Home
from .database import AMONG, Database, Value, listed
from .stage_table import StageTable
from .tombstone_file import NEVER, Entry, Head, KeyChanged, KeyLost, Registered, TombstoneFile, sign

_STAGE: Final = "forget"


class State(StrEnum):
    """How far a forgetting is."""

    KEPT = "kept"
    ERASING = "erasing"
    ERASED = "erased"


class Deletion(Struct, frozen=True):
    """A forgetting: how many lines and records it is about, and when it was decided."""

    id: int
    at: Milliseconds
    state: State
    marks: int
    about: DeletionSummary = NO_SUMMARY


class TombstoneTable:
    """Reads and writes forgettings. The caller opens the transaction."""

    def __init__(self, database: Database) -> None:
        self._db, self._home = database, Home(database.path.parent)
        self._path = self._home.tombstone_file
        self._register = TombstoneFile(self._path)
        self._changed = False
        self.lost = 0
        """How many forgettings could not be read when they were taken over from the register just now."""

    def take_over(self) -> None:
        """Bring tables and register together, after a lost database, a restored one, or a lost register.

        A register that cannot tell which write it is of is taken over, whatever it holds. Raises `StoreError`.
        """
        if self.agree:
            return
        seq, head = self._seq(), self._register.head()
        self._changed = True
        if head is None or head.seq > seq:
            self._adopt(self._register.read())
        if self.lost:
            told = f"the marks of what was forgotten are damaged, {self.lost} of them: it may be back. Forget it again."
            StageTable(self._db).note(_STAGE, [StoreError(told)])
        self._db.run("DELETE FROM register")
        self._db.run("INSERT INTO register VALUES (?)", (max(head.seq if head else 0, seq),))

    def write_down(self) -> None:
        """Write into the register what changed; before each commit, so that nothing forgotten is only in the tables."""
        if not self._changed:
            return
        head = self._register.head() or NEVER
        seq, entries = max(self._seq(), head.seq) + 1, self._entries()
        # Marks that were made by a key that is lost are not those of the key that was made since.
        self._register.write(Head(seq, len(entries), head.sign or self._sign()), entries)
        self._db.run("DELETE FROM register")
        self._db.run("INSERT INTO register VALUES (?)", (seq,))
        self._changed = False

    @property
    def agree(self) -> bool:
        """Whether tables and register say the same."""
        head = self._register.head()
        return head is not None and head.seq == self._seq() and (bool(head.seq) or not self.exist())

    @property
    def know_all(self) -> bool:
        """Whether the register tells of nothing that the tables do not hold."""
        head = self._register.head()
        return head is not None and head.seq <= self._seq()

    def check(self, key: bytes) -> None:
        """Raise `KeyLost` or `KeyChanged` if this is not the key of the tombstones or of the placeholders."""
        if not self.exist():
            known = self._db.one("SELECT sign FROM key_check")
            if known is not None and known[0] != sign(key):
                raise KeyChanged(self._home.key_file)
            return
        head = self._register.head()
        if head is not None and head.sign and head.sign != sign(key):
            raise KeyLost(self._home.key_file, self._path)

    def accept(self, key: bytes) -> None:
        """Record the key that `check` is to expect."""
        known = self._db.one("SELECT sign FROM key_check")
        if known is None or known[0] != sign(key):
            self._db.run("DELETE FROM key_check")
            self._db.run("INSERT INTO key_check VALUES (?)", (sign(key),))

    @property
    def loss(self) -> str:
        """What was lost of the register, until somebody was told; empty where nothing was."""
        return next((each.problem for each in StageTable(self._db).all() if each.name == _STAGE and each.fails), "")

    def loss_told(self) -> None:
        """Somebody was told of the loss."""
        StageTable(self._db).note(_STAGE)

    def unregistered(self) -> bool:
        """Whether the register does not say all that the tables say, or says something else."""
        found = self._register.read()
        return bool(found.damaged) or found.entries != tuple(self._entries())

    def register_anew(self) -> None:
        """Write what the tables say, with the next commit."""
        self._changed = True

    def _sign(self) -> bytes:
        try:
            return sign(self._home.key())
        except OSError as error:
            reason = f"{self._home.key_file} cannot be read: {error.strerror or error}"
            raise StoreError(reason, hint="Nothing was changed. Check its rights, then try again.") from None

    def _seq(self) -> int:
        return self._db.number("SELECT seq FROM register")

    def _entries(self) -> list[Entry]:
        marks: dict[int, list[int]] = {}
        for number, mark in self._db.rows("SELECT forgetting, mark FROM tombstone ORDER BY forgetting, mark"):
            marks.setdefault(cast(int, number), []).append(cast(int, mark))
        return [Entry(each.id, each.at, each.state, tuple(marks.get(each.id, ()))) for each in reversed(self.all())]

    def _adopt(self, found: Registered) -> None:
        """Hold what the register tells. What rows tell of it goes when their copies are read again."""
        known = {each.id: each for each in self.all()}
        self.lost = max(found.damaged - len(known.keys() - {entry.number for entry in found.entries}), 0)
        places = [str(name) for (name,) in self._db.rows("SELECT archived FROM source")]
        for entry in found.entries:
            state = State(entry.state)
            if places and state is State.ERASED:
                state = State.ERASING
            same = known.get(entry.number)
            if same is not None and same.at == entry.at:
                number = same.id
                state = max(state, same.state, key=list(State).index)
                self.become(number, state)
            else:
                free = None if same else entry.number
                sql = "INSERT INTO forgetting (id, at, state) VALUES (?, ?, ?)"
                number = self._db.run(sql, (free, entry.at, state))
            self._db.run_many("INSERT OR IGNORE INTO tombstone VALUES (?, ?)", [(mark, number) for mark in entry.marks])
            if state is State.ERASING:
                self.intend(number, dict.fromkeys(places, False))
                self._db.run("DELETE FROM forgotten_item")  # any of them may hold what was erased
        if places and found.entries:
            # The copies may have lost lines since these checksums were stored.
            self._db.run("UPDATE source SET rules = '', sums = x''")
            self._db.run("UPDATE session SET title = '', title_rank = -1, branch = '', cwd = ''")

    def begin(self, at: Milliseconds, state: State, marks: Collection[int], about: DeletionSummary = NO_SUMMARY) -> int:
        """Forget what has these marks; the number of the forgetting."""
        self._changed = True
        told = json.dumps(asdict(about))
        if state is not State.KEPT:
            self._drop_kept()
        number = self._db.run("INSERT INTO forgetting (at, state, told) VALUES (?, ?, ?)", (at, state, told))
        self._db.run_many("INSERT OR IGNORE INTO tombstone VALUES (?, ?)", [(mark, number) for mark in marks])
        return number

    def _drop_kept(self, forgetting: int = 0) -> None:
        """Drop the kept rows of a deletion, and all kept summaries: any may quote an erased line."""
        self._db.run("DELETE FROM forgotten_item WHERE forgetting = ? OR start_line = 0", (forgetting,))

    def exist(self, *, erased: bool = False) -> bool:
        """Whether anything was forgotten, or erased."""
        wanted = "WHERE state <> 'kept'" if erased else ""
        return bool(self._db.number(f"SELECT EXISTS (SELECT 1 FROM forgetting {wanted})"))

    def known(self, marks: Collection[int], *, erased: bool = False, of: int | None = None) -> set[int]:
        """Those of these marks that were forgotten, or erased; by one forgetting alone where it is given."""
        wanted = "AND forgetting IN (SELECT id FROM forgetting WHERE state <> 'kept')" if erased else ""
        wanted += f" AND forgetting = {of:d}" if of is not None else ""
        rows = self._db.rows(f"SELECT DISTINCT mark FROM tombstone WHERE mark {AMONG} {wanted}", (listed(marks),))
        return {cast(int, row[0]) for row in rows}

    def join(self, mark: int, others: Collection[int]) -> None:
        """What is known by this mark is to be known by the others, too."""
        self._changed = True
        self._db.run_many(
            "INSERT OR IGNORE INTO tombstone SELECT ?, forgetting FROM tombstone WHERE mark = ?",
            [(other, mark) for other in others],
        )

    def all(self) -> list[Deletion]:
        """Every forgetting, newest first."""
        rows = self._db.rows(
            """SELECT id, at, state, (SELECT count(*) FROM tombstone WHERE forgetting = id), told
               FROM forgetting ORDER BY id DESC"""
        )
        return [
            Deletion(cast(int, row[0]), cast(int, row[1]), State(str(row[2])), cast(int, row[3]), _about(row[4]))
            for row in rows
        ]

    def load(self, number: int) -> Deletion | None:
        """The forgetting with this number."""
        return next((each for each in self.all() if each.id == number), None)

    def was_undone(self, number: int) -> bool:
        """Whether there was a forgetting with this number, and is none any more."""
        given = self._db.number("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'forgetting'")
        return 0 < number <= given and self.load(number) is None

    def overtaken(self) -> list[int]:
        """The forgettings that could be undone, but all of which was erased since."""
        rows = self._db.rows(
            """SELECT f.id FROM forgetting f WHERE f.state = 'kept' AND EXISTS (
                   SELECT 1 FROM tombstone WHERE forgetting = f.id
               ) AND NOT EXISTS (
                   SELECT 1 FROM tombstone t WHERE t.forgetting = f.id AND t.mark NOT IN (
                       SELECT mark FROM tombstone JOIN forgetting g ON g.id = forgetting WHERE g.state <> 'kept'
                   )
               )"""
        )
        return [cast(int, number) for (number,) in rows]

    def become(self, number: int, state: State) -> None:
        """A forgetting is in another state now."""
        self._changed = True
        self._db.run("UPDATE forgetting SET state = ? WHERE id = ?", (state, number))
        if state is not State.KEPT:
            self._drop_kept(number)
            shown = "json_remove(told, '$.projects', '$.first', '$.last')"
            self._db.run(f"UPDATE forgetting SET told = {shown} WHERE id = ?", (number,))

    def undo(self, number: int) -> None:
        """Nothing was forgotten. Files of which nothing was left are looked at anew."""
        self._changed = True
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
        self._db.run(f"DELETE FROM record WHERE id {AMONG}", (listed(records),))

    def sent(self, exchanges: Collection[int]) -> int:
        """How many of these exchanges were sent to a language model."""
        return self._db.number(
            f"""SELECT count(DISTINCT exchange) FROM call
               WHERE state <> 'released' AND exchange {AMONG}""",
            (listed(exchanges),),
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


def _about(told: Value) -> DeletionSummary:
    found: dict[str, Any] = json.loads(str(told))
    found |= {name: tuple(map(str, found.get(name, ()))) for name in ("agents", "projects")}
    return DeletionSummary(**found)
