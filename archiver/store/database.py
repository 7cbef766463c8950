"""The connection to SQLite: pragmas, transactions, and translation of SQLite's errors into Palaver's."""

import json
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypeAlias, cast

import apsw

from ...core.errors import StoreBusy, StoreCorrupt, StoreError, StoreFromFuture, StoreMissing, StoreReadOnly
from ...core.home import Home
from ...core.installation import upgrade_hint
from .migrations import MIGRATIONS
from .sqlite import BUSY_MS, CHECKSUM_BYTES, PAGE_BYTES, connect, corrupt, has_log, is_wal_safe, translated_errors

Value: TypeAlias = str | bytes | int | float | None
Row: TypeAlias = tuple[Any, ...]
"""Values of the types that the schema declares."""

AMONG: Final = "IN (SELECT value FROM json_each(?))"
"""SQL condition for any number of keys, passed as the one value that `listed` returns."""
_ATTEMPTS: Final = 10
"""Attempts to run a query on a file that another process replaces during each."""
_CHECKPOINT_PAGES: Final = 4_000
"""Pages in the write-ahead log from which on SQLite writes them back. A large value saves writes of pages that change
repeatedly in a long ingest run.
"""


class _UnwritableFile(NamedTuple):
    """State of a database in a folder that this process may not write, where SQLite can create no files.

    With a write-ahead log, SQLite reads it and notices changes by itself. Without a log it is opened as `immutable`, so
    SQLite notices no change; two unequal states then mean that the file changed. `mtime` is in nanoseconds.
    """

    inode: int
    immutable: bool
    mtime: int = 0
    size: int = 0

    @classmethod
    def at(cls, path: Path) -> Self | None:
        """Return the present state; None where this process may write or there is no file."""
        if os.access(path.parent, os.W_OK):
            return None
        try:
            found = path.stat()
            if has_log(path):
                return cls(found.st_ino, immutable=False)
        except OSError:
            return None
        return cls(found.st_ino, immutable=True, mtime=found.st_mtime_ns, size=found.st_size)


class Database:
    """One SQLite connection, for one thread."""

    def __init__(
        self,
        connection: apsw.Connection,
        path: Path,
        unwritable: _UnwritableFile | None,
        reopen: Callable[[Path], "Database"],
    ) -> None:
        self._connection, self._unwritable, self._reopen = connection, unwritable, reopen
        self.path = path
        self.unreadable: set[int] = set()
        """Keys of requested items that are on damaged pages."""

    @classmethod
    def create(cls, path: Path) -> Self:
        """Open a file, or create it, and migrate its schema."""
        return cls._open(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an existing file and migrate its schema. Raises `StoreMissing`."""
        _check_exists(path)
        return cls._open(path, apsw.SQLITE_OPEN_READWRITE)

    @classmethod
    def open_read_only(cls, path: Path) -> Self:
        """Open an existing file without changing anything about it. Raises `StoreMissing`."""
        _check_exists(path)
        return cls._open_to_read(path, cls.open_read_only)

    @classmethod
    def _open_to_read(cls, path: Path, reopen: "Callable[[Path], Database]", *, current: bool = False) -> Self:
        _check_last_page(path)
        unwritable = _UnwritableFile.at(path)
        immutable = unwritable is not None and unwritable.immutable
        name = f"{path.absolute().as_uri()}?immutable=1" if immutable else str(path)
        with translated_errors(path):
            flags = apsw.SQLITE_OPEN_READONLY | (apsw.SQLITE_OPEN_URI if immutable else 0)
            connection = connect(name, flags)
            connection.set_busy_timeout(BUSY_MS)
        database = cls(connection, path, unwritable, reopen)
        if current:
            database._check_current()
        return database

    @classmethod
    def _open(cls, path: Path, flags: int) -> Self:
        unwritable = _UnwritableFile.at(path)
        if unwritable and unwritable.immutable:
            return cls._open_to_read(path, cls.open, current=True)
        _check_last_page(path)
        with translated_errors(path):
            connection = connect(str(path), flags)
            try:
                connection.set_busy_timeout(BUSY_MS)
                # A new file has page checksums at once, an existing one from its next VACUUM on.
                connection.reserve_bytes("main", CHECKSUM_BYTES)
                if flags & apsw.SQLITE_OPEN_CREATE and unwritable is None:
                    # Before SQLite creates the files beside it, which inherit its permissions.
                    path.chmod(path.stat().st_mode & 0o600)
                database = cls(connection, path, unwritable, cls.open)
                database._prepare()
            except BaseException:
                connection.close()
                raise
        return database

    def _prepare(self) -> None:
        run = self._connection.execute
        if is_wal_safe():
            run("PRAGMA journal_mode=WAL").fetchall()
        run("PRAGMA synchronous=FULL")
        run("PRAGMA foreign_keys=ON")
        run("PRAGMA secure_delete=ON").fetchall()
        run(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}").fetchall()
        self._migrate()

    def _migrate(self) -> None:
        if self._version() == len(MIGRATIONS):
            return
        with self.transaction():
            for migration in MIGRATIONS[self._known_version() :]:
                self._connection.execute(migration)
            self._connection.execute(f"PRAGMA user_version={len(MIGRATIONS)}")

    @property
    def schema(self) -> tuple[int, int]:
        """Number of migrations that were applied to the file, and of those that exist."""
        return self._version(), len(MIGRATIONS)

    @property
    def has_checksums(self) -> bool:
        """True if every page has a checksum, which each read verifies."""
        return self.one("PRAGMA checksum_verification") == ("1",)

    @property
    def is_read_only(self) -> bool:
        """True if nothing can be written."""
        return self._connection.readonly("main")

    def _version(self) -> int:
        return self.number("PRAGMA user_version")

    def _known_version(self) -> int:
        version = self._version()
        if version > len(MIGRATIONS):
            raise StoreFromFuture(
                f"{self.path} has schema {version}, this Palaver knows {len(MIGRATIONS)}", hint=upgrade_hint()
            )
        return version

    def _check_current(self) -> None:
        """Close the connection and raise if the schema is older, since it cannot be migrated, or newer."""
        if self._known_version() < len(MIGRATIONS):
            self.close()
            raise StoreReadOnly(self.path.parent, "the schema of the database is older and has to be migrated")

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Commit all writes in the block, or none.

        It takes the write lock at once, so that no reader has to be upgraded half-way.
        """
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            # SQLite rolls back by itself after a full disk or a failed read.
            if self._connection.in_transaction:
                self.run("ROLLBACK")
            raise

    @contextmanager
    def step(self) -> Generator[None]:
        """Undo only the writes in the block, which is part of a transaction, if it fails."""
        self.run("SAVEPOINT step")
        try:
            yield
            self.run("RELEASE step")
        except BaseException:
            if self._connection.in_transaction:
                self.run("ROLLBACK TO step")
                self.run("RELEASE step")
            raise

    def run(self, sql: str, values: tuple[Value, ...] = ()) -> int:
        """Run one statement; return the row id of the last insert."""
        self._reopen_if_changed()
        with translated_errors(self.path):
            self._connection.execute(sql, values)
        return self._connection.last_insert_rowid()

    def run_many(self, sql: str, rows: Iterable[tuple[Value, ...]]) -> None:
        """Run one statement for each row of values."""
        values = list(rows)  # Errors of the caller's iterable must not be translated.
        self._reopen_if_changed()
        with translated_errors(self.path):
            self._connection.executemany(sql, values)

    def insert(self, table: str, values: Mapping[str, Value]) -> int:
        """Insert a row, given by column; return its row id."""
        sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({placeholders(values)})"
        return self.run(sql, tuple(values.values()))

    def update(self, table: str, key: str, number: int, values: Mapping[str, Value]) -> None:
        """Update columns of the row whose column `key` is `number`."""
        settings = ", ".join(f"{column} = ?" for column in values)
        self.run(f"UPDATE {table} SET {settings} WHERE {key} = ?", (*values.values(), number))

    def upsert(self, table: str, key: str, values: Mapping[str, Value]) -> None:
        """Insert a row, given by column, or update the one with the same `key`, which names unique columns."""
        updates = ", ".join(f"{column} = excluded.{column}" for column in values if column not in key.split(", "))
        self.run(
            f"""INSERT INTO {table} ({", ".join(values)}) VALUES ({placeholders(values)})
                ON CONFLICT ({key}) DO UPDATE SET {updates}""",
            tuple(values.values()),
        )

    def rows(self, sql: str, values: tuple[Value, ...] = ()) -> list[Row]:
        """Return all rows of a query."""
        for _ in range(_ATTEMPTS):
            self._reopen_if_changed()
            try:
                found = self._read(sql, values)
            except StoreError:
                # A read of a file that is being replaced can look like damage.
                if not self._has_changed():
                    raise
            else:
                if not self._has_changed():
                    return found
        raise StoreBusy(f"{self.path} was replaced repeatedly while it was read", hint="Try again in a moment.")

    def rows_among(self, sql: str, keys: Iterable[int], values: tuple[Value, ...] = ()) -> list[Row]:
        """Return the rows of a query whose first value is the list of keys.

        Outside a transaction, rows on damaged pages are left out and their keys added to `unreadable`. Inside a
        transaction they raise `StoreCorrupt`, so that nothing is written on the strength of an incomplete result.
        """
        wanted = list(keys)
        try:
            return self.rows(sql, (listed(wanted), *values))
        except StoreCorrupt:
            if self._connection.in_transaction:
                raise
            if len(wanted) <= 1:
                self.unreadable.update(wanted)
                return []
        half = len(wanted) // 2
        return [*self.rows_among(sql, wanted[:half], values), *self.rows_among(sql, wanted[half:], values)]

    def one(self, sql: str, values: tuple[Value, ...] = ()) -> Row | None:
        """Return the first row of a query, if there is one."""
        found = self.rows(sql, values)
        return found[0] if found else None

    def number(self, sql: str, values: tuple[Value, ...] = ()) -> int:
        """Return the first value of a query as an integer; 0 for NULL or no row."""
        row = self.one(sql, values)
        return int(row[0] or 0) if row else 0

    def numbers(self, sql: str, values: tuple[Value, ...] = ()) -> list[int]:
        """Return the first column of a query, of integers."""
        return [row[0] for row in self.rows(sql, values)]

    def _read(self, sql: str, values: tuple[Value, ...]) -> list[Row]:
        with translated_errors(self.path):
            return cast("list[Row]", self._connection.execute(sql, values).fetchall())

    def _has_changed(self) -> bool:
        """Return whether another process changed the file in a way that SQLite does not notice."""
        known = self._unwritable
        return known is not None and not self._connection.in_transaction and _UnwritableFile.at(self.path) != known

    def _reopen_if_changed(self) -> None:
        if self._has_changed():
            before, now = self._connection, self._reopen(self.path)
            self.__dict__.update(now.__dict__)
            before.close()

    def copy_to(self, path: Path) -> None:
        """Copy one consistent state of the database into an empty file, while others read and write it."""
        with translated_errors(self.path), closing(connect(str(path), apsw.SQLITE_OPEN_READWRITE)) as target:
            if self._connection.reserve_bytes("main") == CHECKSUM_BYTES:
                # The VFS writes checksums once it has seen a first page that reserves bytes for them.
                target.reserve_bytes("main", CHECKSUM_BYTES)
                target.execute("PRAGMA user_version=1")
            with target.backup("main", self._connection, "main") as copying:
                copying.step(-1)
            target.execute("PRAGMA journal_mode=DELETE").fetchall()

    @staticmethod
    def problems(path: Path) -> list[str]:
        """Return the problems that SQLite's integrity check finds in a file; empty for a sound file."""
        try:
            with closing(Database.open_read_only(path)) as database:
                found = [str(row[0]) for row in database.rows("PRAGMA integrity_check")]
        except StoreCorrupt as error:
            return [str(error)]
        return [] if found == ["ok"] else found

    @staticmethod
    def prepare_new(connection: apsw.Connection, version: int) -> None:
        """Give an empty file page checksums and the tables of a version of the schema."""
        connection.reserve_bytes("main", CHECKSUM_BYTES)
        for migration in MIGRATIONS[:version]:
            connection.execute(migration)
        connection.execute(f"PRAGMA user_version={version}")

    def close(self) -> None:
        """Close the connection; calling it twice is fine."""
        self._unwritable = None
        self._connection.close()


def listed(keys: Iterable[int] | Iterable[str]) -> str:
    """Return keys as the one value that `AMONG` takes."""
    return json.dumps(list(keys))


def placeholders(values: Iterable[object]) -> str:
    """Return a question mark for each value, separated by commas."""
    return ",".join("?" for _ in values)


def _check_exists(path: Path) -> None:
    # SQLite takes an empty file for a new database and would replace a lost one by an empty archive.
    if not path.is_file() or path.stat().st_size == 0:
        raise StoreMissing(path.parent, copies=Home(path.parent).has_copies)


def _check_last_page(path: Path) -> None:
    """Raise `StoreCorrupt` if the last page is incomplete and no write-ahead log has it.

    SQLite fills such a page with zeros and verifies no checksum; a write to it would give the zeros a valid one.
    """
    with suppress(FileNotFoundError):
        if path.stat().st_size % PAGE_BYTES and not has_log(path):
            raise corrupt(path, "its last page is incomplete")
