"""Foreign databases: SQLite files of other programs, read while those write to them, without leaving a trace.

Nothing is locked for longer than one conversation takes, no file is made beside theirs, and what is read is one state
of the database or nothing.
"""

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias, cast
from urllib.parse import quote

import apsw

from ...core.errors import SourceUnreadable

Value: TypeAlias = "str | bytes | int | float | None"
Rows: TypeAlias = "list[tuple[Value, ...]]"

_ATTEMPTS = 20
_PAUSE = 0.05
_BUSY_MS = 2_000


class ForeignDatabase:
    """A database of somebody else, by its path."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def state(self) -> tuple[tuple[int, ...], ...]:
        """What is another whenever the database is."""
        return tuple(_stat(self._beside(suffix)) for suffix in ("", "-wal"))

    def columns(self, table: str) -> set[str]:
        """The names of a table's columns; empty where there is no such table."""
        return {str(name) for (name,) in self.rows("SELECT name FROM pragma_table_info(?)", (table,))}

    def rows(self, sql: str, values: tuple[Value, ...] = ()) -> Rows:
        """All rows of a query, of one state of the database; raises `SourceUnreadable`."""
        problem = ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_PAUSE)
            try:
                before = self._lone_state()
                with self._opened(lone=before is not None) as connection:
                    found = cast("Rows", connection.execute(sql, values).fetchall())
                if before is None or before == self._lone_state():
                    return found
                problem = "it changes too often"
            except apsw.Error as error:
                problem = str(error)
                if isinstance(error, apsw.NotADBError | apsw.SQLError):
                    break
                continue
            except OSError as error:
                problem = error.strerror or str(error)
                break
        raise SourceUnreadable(self.path, f"the database cannot be read: {problem}", hint=_HINT)

    def _lone_state(self) -> tuple[object, ...] | None:
        """The state of a database whose file alone is the whole; None where its write-ahead log holds more."""
        if _stat(self._beside("-wal"))[-1:] not in ((), (0,)):
            return None
        if _stat(self._beside("-journal"))[-1:] not in ((), (0,)):
            raise apsw.BusyError("another program is writing")
        with self.path.open("rb") as file:
            return _stat(self.path), file.read(100)

    @contextmanager
    def _opened(self, *, lone: bool) -> Generator[apsw.Connection]:
        # A lone file is read without any lock, and its state compared afterwards: a lock would keep its program from
        # writing, and to take one SQLite makes files beside a database that uses a log.
        how = "immutable=1" if lone else "mode=ro&readonly_shm=1"
        name = f"file:{quote(os.fsencode(self.path.absolute()))}?{how}"
        connection = apsw.Connection(name, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
        try:
            connection.set_busy_timeout(_BUSY_MS)
            connection.execute("PRAGMA query_only=1")
            connection.execute("PRAGMA trusted_schema=0")
            yield connection
        finally:
            connection.close()

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)


_HINT = "If its program is not running, start and quit it once; then run `palaver archive` again."


def as_bytes(column: str) -> str:
    """What selects a column whose text may be no text: as bytes, which `text` reads."""
    return f"CASE typeof({column}) WHEN 'text' THEN CAST({column} AS BLOB) ELSE {column} END"


def as_text(value: Value) -> str:
    """A value as text, whatever it is."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)


def _stat(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return ()
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
