"""SQLite databases of other programs, which can write to them at any time.

A query locks the database only while it runs, and creates no file beside the database. It returns rows of one
consistent state, or raises an error.
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
_HINT = "If its program is not running, start and quit it once. Then run `palaver archive` again."


class ForeignDatabase:
    """A database of another program."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def state(self) -> tuple[tuple[int, ...], ...]:
        """Return device, inode, modification time and size of the database and of its write-ahead log.

        Every change of the database changes at least one of these values.
        """
        return tuple(_stat(self._beside(suffix)) for suffix in ("", "-wal"))

    def columns(self, table: str) -> set[str]:
        """Return the column names of a table, or an empty set if the table does not exist."""
        return {str(name) for (name,) in self.rows("SELECT name FROM pragma_table_info(?)", (table,))}

    def rows(self, sql: str, values: tuple[Value, ...] = ()) -> Rows:
        """Return all rows of a query. Raises `SourceUnreadable`."""
        problem = ""
        for attempt in range(_ATTEMPTS):
            if attempt:
                time.sleep(_PAUSE)
            try:
                before = self._state_without_log()
                with self._opened(immutable=before is not None) as connection:
                    found = cast("Rows", connection.execute(sql, values).fetchall())
                if before is None or before == self._state_without_log():
                    return found
                problem = "another program changes it too often"
            except (apsw.NotADBError, apsw.SQLError) as error:
                problem = str(error)
                break
            except apsw.Error as error:
                problem = str(error)
            except OSError as error:
                problem = error.strerror or str(error)
                break
        raise SourceUnreadable(self.path, f"the database cannot be read: {problem}", hint=_HINT)

    def _state_without_log(self) -> tuple[object, ...] | None:
        """Return the state of a database whose write-ahead log is empty or missing. Return None for other databases."""
        if _stat(self._beside("-wal"))[-1:] not in ((), (0,)):
            return None
        if _stat(self._beside("-journal"))[-1:] not in ((), (0,)):
            raise apsw.BusyError("another program is writing")
        with self.path.open("rb") as file:
            return _stat(self.path), file.read(100)

    @contextmanager
    def _opened(self, *, immutable: bool) -> Generator[apsw.Connection]:
        # A database without a log is read without a lock, and its state is compared afterwards. A lock would block
        # writes of the other program. In WAL mode, SQLite would also create files beside the database.
        mode = "immutable=1" if immutable else "mode=ro&readonly_shm=1"
        name = f"file:{quote(os.fsencode(self.path.absolute()))}?{mode}"
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


def as_bytes(column: str) -> str:
    """Return an SQL expression that selects text as bytes, because the text can be invalid UTF-8.

    Decode the bytes with `as_text`.
    """
    return f"CASE typeof({column}) WHEN 'text' THEN CAST({column} AS BLOB) ELSE {column} END"


def as_text(value: Value) -> str:
    """Return any database value as text."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else "" if value is None else str(value)


def _stat(path: Path) -> tuple[int, ...]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return ()
    return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)
