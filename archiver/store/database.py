"""Connection to SQLite: settings, transactions, schema, errors, and encryption of secrets in paths.

`schema/schema.sql` is version 100 of the schema. Each numbered file after it, such as `0101_name.sql`, changes the
schema to its number, and is never edited after a release. `PRAGMA user_version` is the version of a database. Opening a
database applies the files that it lacks. Versions before 100 are converted by `migration.py`.

Settings include page checksums and the supported versions. SQLite's errors are translated to Palaver's errors.

A part of a path that contains a secret is encrypted with the key of the archive. A placeholder would not allow the
file to be found again. Equal parts are encrypted equally, so that rows are found by path, and by the folder above.
"""

import base64
import hmac
import json
import os
import shutil
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cached_property, partial
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple, Self, TypeAlias, cast

import apsw

from ...core.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFromFuture,
    StoreMissing,
    StoreOutdated,
    StoreReadOnly,
    ValueRefused,
)
from ...core.home import Home, upgrade_hint
from ..redaction import VERSION, Redactor
from ..redaction.scanner import name_may_contain_secret

REPAIR_HINT: Final = "Run `palaver fsck --repair` to save every row that can still be read."
PAGE_BYTES: Final = 4_096
CHECKSUM_BYTES: Final = 8
"""Bytes that the checksum VFS reserves at the end of each page."""
BUSY_MS: Final = 30_000
_PATIENCE_MS: Final = 1_000
"""Milliseconds to wait for commands that finish soon, such as a search, before a database counts as in use."""
_FULL: Final = 64 * 1024
"""Bytes of free space below which a disk counts as full. A reader needs 32 KiB for the index of the log."""
_FULL_HINT: Final = "Free some space, then try again. With PALAVER_READ_ONLY=1, you can search meanwhile."
_NO_REASON: Final = {"", "not an error"}
_WAL_SAFE: Final = ((3, 51, 3), (3, 50, 7), (3, 44, 6))
"""SQLite versions that fixed the WAL-reset bug, one per release branch (https://sqlite.org/wal.html)."""


def connect(name: str, flags: int) -> apsw.Connection:
    """Open a file with SQLite's checksum VFS (https://sqlite.org/cksumvfs.html), which apsw's wheels contain.

    Loading the VFS takes 0.4 ms and makes it the default VFS of this process. Files without checksums stay unchanged.
    """
    if "cksmvfs" not in apsw.vfs_names():
        with closing(apsw.Connection(":memory:")) as loader:
            loader.enable_load_extension(True)
            try:
                loader.load_extension(str(Path(apsw.__file__).parent / "sqlite_extra_binaries" / "cksumvfs"))
            except apsw.ExtensionLoadingError as error:
                raise StoreError(
                    f"apsw has no checksum extension: {error}", hint="Install apsw from its wheel on PyPI."
                ) from error
    return apsw.Connection(name, flags=flags)


def open_exclusively(path: Path) -> apsw.Connection:
    """Open a database that no other process has open. No other process can read or write it until it is closed.

    Raises:
        StoreBusy: Another process has the database open.
        StoreError: SQLite cannot open the file, for example because it is damaged.
    """
    with translated_errors(path):
        connection = connect(str(path), apsw.SQLITE_OPEN_READWRITE)
        connection.set_busy_timeout(_PATIENCE_MS)
        try:
            connection.execute("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK").fetchall()
        except apsw.BusyError as error:
            connection.close()
            hint = "Stop `palaver watch`, close all agents that use Palaver, then try again."
            raise StoreBusy(f"{path} is in use by another process", hint=hint) from error
        except apsw.Error:
            connection.close()
            raise
    return connection


def database_files(path: Path) -> list[Path]:
    """Return the path of a database, and those of the files that SQLite can create beside it."""
    return [path.with_name(f"{path.name}{suffix}") for suffix in ("", "-wal", "-shm", "-journal")]


def tables(connection: apsw.Connection) -> list[str]:
    """Return the names of all tables in the order of their creation, without those of SQLite."""
    sql = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY rowid"
    return [str(name) for (name,) in connection.execute(sql)]


def has_rowid(connection: apsw.Connection, table: str) -> bool:
    """Return whether a table has row IDs."""
    return connection.execute("SELECT wr FROM pragma_table_list(?)", (table,)).fetchall() != [(1,)]


def has_log(path: Path) -> bool:
    """Return whether a database has a non-empty write-ahead log."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except FileNotFoundError:
        return False


def sqlite_version() -> str:
    """Return the version of the SQLite library."""
    return apsw.sqlite_lib_version()


def is_wal_safe() -> bool:
    """Return whether this SQLite version has the fix of the WAL-reset bug, which loses committed rows."""
    return _wal_is_safe(sqlite_version())


def _wal_is_safe(version: str) -> bool:
    numbers = tuple(int(part) for part in version.split("."))
    return numbers >= _WAL_SAFE[0] or any(numbers[:2] == safe[:2] and numbers >= safe for safe in _WAL_SAFE[1:])


def corrupt(path: Path, reason: str) -> StoreCorrupt:
    """Return the error for a damaged database."""
    return StoreCorrupt(f"{path}: {reason}", hint=REPAIR_HINT)


@contextmanager
def translated_errors(path: Path) -> Generator[None]:
    """Translate SQLite's errors to Palaver's errors. A busy database is never reported as damaged.

    The block must contain only calls of SQLite, because every `ValueError` in it becomes a `ValueRefused`.
    """
    try:
        yield
    except apsw.BusyError as error:
        raise StoreBusy(
            f"{path} stayed locked for {BUSY_MS // 1000} s", hint="Another Palaver process is writing. Try again later."
        ) from error
    except (apsw.ReadOnlyError, apsw.CantOpenError) as error:
        Home(path.parent).check_writable()
        raise _failed(path, error, "Check its owner and permissions.") from error
    except (apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError) as error:
        raise corrupt(path, str(error)) from error
    except apsw.IOError as error:
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA:
            raise corrupt(path, "a page does not match its checksum") from error
        raise _failed(path, error, "Check the disk and its free space, then try again.") from error
    except (OverflowError, ValueError) as error:
        raise ValueRefused(f"a value cannot be stored: {error}", hint="Please report which agent wrote it.") from error
    except apsw.Error as error:
        raise _failed(path, error, "Check free space and permissions, then try again.") from error


def _failed(path: Path, error: apsw.Error, hint: str) -> StoreError:
    """Return the error for a failed operation.

    SQLite describes a full disk differently in each operation, even as `not an error`.
    """
    with suppress(OSError):
        if isinstance(error, apsw.FullError) or shutil.disk_usage(path.parent).free < _FULL:
            return StoreError(f"{path}: the disk is full", hint=_FULL_HINT)
    reason = str(error)
    if reason in _NO_REASON:
        reason = f"SQLite reports {type(error).__name__} ({getattr(error, 'extendedresult', 0)})"
    return StoreError(f"{path}: {reason}", hint=hint)


SCHEMA: Final = Path(__file__).with_name("schema")
FIRST_VERSION: Final = 100
"""Version of `schema.sql`."""
CHANGES: Final = tuple(sorted(SCHEMA.glob("[0-9]*.sql")))
"""Changes of the schema after `schema.sql`, in order."""


def latest_version() -> int:
    """Return the version of the schema that this version of Palaver uses."""
    return FIRST_VERSION + len(CHANGES)


def schema_sql(version: int, target: int | None = None) -> str:
    """Return the statements that change a database from one version of the schema to another, by default the latest.

    Version 0 is an empty file.
    """
    last = latest_version() if target is None else target
    changes = CHANGES[max(version - FIRST_VERSION, 0) : last - FIRST_VERSION]
    files = changes if version else (SCHEMA / "schema.sql", *changes)
    return "".join(path.read_text("utf-8") for path in files) + f"PRAGMA user_version={last};"


Value: TypeAlias = str | bytes | int | float | None
Row: TypeAlias = tuple[Any, ...]
"""Row of a query. The schema declares the types of its values."""

AMONG: Final = "IN (SELECT value FROM json_each(?))"
"""SQL condition that a column has one of several values, for example `f"item {AMONG}"`.

The function `listed` converts the values to the single parameter `?`.
"""
_ATTEMPTS: Final = 10
"""Maximum number of attempts to run a query if other processes keep replacing the file of the database."""
_WRITE_ONCE: Final = "Run `palaver status` once without read-only mode."
_CHECKPOINT_PAGES: Final = 4_000
"""Size of the write-ahead log, in pages, at which SQLite starts a checkpoint.

A large value reduces repeated writes of the same pages during a long ingest run.
"""


class _UnwritableFile(NamedTuple):
    """State of a database file in a folder where SQLite must not or cannot create files.

    If the database has a write-ahead log, SQLite notices changes by other processes. Otherwise SQLite opens the file as
    `immutable` and notices no changes. Palaver then compares this state before and after a query. `mtime` is in
    nanoseconds.
    """

    inode: int
    immutable: bool
    mtime: int = 0
    size: int = 0

    @classmethod
    def at(cls, path: Path, *, read_only: bool = False) -> Self | None:
        """Return the current state of a file, or None if the file does not exist or its folder is writable.

        With `read_only`, the state is returned for a writable folder too.
        """
        if not read_only and os.access(path.parent, os.W_OK):
            return None
        try:
            state = path.stat()
            if has_log(path):
                return cls(state.st_ino, immutable=False)
        except OSError:
            return None
        return cls(state.st_ino, immutable=True, mtime=state.st_mtime_ns, size=state.st_size)


class Database:
    """One SQLite connection, for one thread."""

    def __init__(
        self,
        connection: apsw.Connection,
        path: Path,
        unwritable: _UnwritableFile | None,
        reopen: Callable[[Path], "Database"],
        *,
        read_only: bool = False,
    ) -> None:
        self._connection, self._unwritable, self._reopen = connection, unwritable, reopen
        self.path, self.read_only = path, read_only
        self.unreadable: set[int] = set()
        """Keys of items that `rows_among` could not read because their pages are damaged."""

    @classmethod
    def create(cls, path: Path) -> Self:
        """Open or create a file, and apply the changes of the schema that it lacks. Raises `StoreOutdated`."""
        return cls._open(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an existing file, and apply the changes of the schema that it lacks.

        Raises:
            StoreMissing: The file does not exist or is empty.
            StoreOutdated: The file must be converted by `palaver migrate`.
        """
        _check_exists(path)
        return cls._open(path, apsw.SQLITE_OPEN_READWRITE)

    @classmethod
    def open_read_only(cls, path: Path, *, current: bool = False, read_only: bool = False) -> Self:
        """Open an existing file without modifying it. Other processes can write at the same time.

        Args:
            path: The file.
            current: True to refuse a file whose schema is not current.
            read_only: True for read-only mode, in which the files beside the database stay unchanged too.

        Raises:
            StoreMissing: The file does not exist or is empty.
            StoreOutdated: With `current`, the file must be converted by `palaver migrate`.
            StoreReadOnly: With `current`, the file lacks changes of the schema, or SQLite would have to write.
        """
        _check_exists(path)
        reopen = partial(cls.open_read_only, current=current, read_only=read_only)
        return cls._open_to_read(path, reopen, current=current, read_only=read_only)

    @classmethod
    def _open_to_read(
        cls, path: Path, reopen: "Callable[[Path], Database]", *, current: bool = False, read_only: bool = False
    ) -> Self:
        _check_last_page(path)
        unwritable = _UnwritableFile.at(path, read_only=read_only)
        immutable = unwritable is not None and unwritable.immutable
        if read_only and not immutable and not path.with_name(f"{path.name}-shm").exists():
            raise StoreReadOnly(path.parent, "its write-ahead log must be recovered first", hint=_WRITE_ONCE)
        options = "immutable=1" if immutable else "readonly_shm=1" if read_only else ""
        name = f"{path.absolute().as_uri()}?{options}" if options else str(path)
        with translated_errors(path):
            connection = connect(name, apsw.SQLITE_OPEN_READONLY | (apsw.SQLITE_OPEN_URI if options else 0))
            connection.set_busy_timeout(BUSY_MS)
        database = cls(connection, path, unwritable, reopen, read_only=read_only)
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
            inode = path.stat().st_ino if path.exists() else None
            connection = connect(str(path), flags)
            try:
                connection.set_busy_timeout(BUSY_MS)
                # A new file has page checksums from the start, an existing file after its next VACUUM.
                connection.reserve_bytes("main", CHECKSUM_BYTES)
                if flags & apsw.SQLITE_OPEN_CREATE and unwritable is None:
                    # Set permissions before SQLite creates the files beside it, which inherit them.
                    path.chmod(path.stat().st_mode & 0o600)
                database = cls(connection, path, unwritable, cls.open)
                database._version()  # Wait until `palaver migrate` has finished.
                if inode not in {None, path.stat().st_ino}:
                    # The file was replaced. SQLite would combine it with the log of the new file.
                    connection.close()
                    return cls._open(path, flags)
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
        run("PRAGMA secure_delete=ON").fetchall()
        run(f"PRAGMA wal_autocheckpoint={_CHECKPOINT_PAGES}").fetchall()
        if self._version() != latest_version():
            with self.transaction():
                run(schema_sql(self._known_version()))
        run("PRAGMA foreign_keys=ON")  # A change of the schema may replace tables that other tables reference.

    @property
    def schema(self) -> tuple[int, int]:
        """Version of the schema of this database, and the version that this version of Palaver uses."""
        return self._version(), latest_version()

    @property
    def is_read_only(self) -> bool:
        """True if the database cannot be written."""
        return self._connection.readonly("main")

    def _version(self) -> int:
        return self.number("PRAGMA user_version")

    def _known_version(self) -> int:
        """Return the version of the schema. Raises `StoreFromFuture` or `StoreOutdated`."""
        version = self._version()
        if version > latest_version():
            raise StoreFromFuture(
                f"{self.path} has schema {version}; Palaver supports {latest_version()}", hint=upgrade_hint()
            )
        if 0 < version < FIRST_VERSION:
            raise StoreOutdated(self.path)
        return version

    def _check_current(self) -> None:
        """Raise an error if the schema is not the latest one. A database that cannot be written cannot be changed."""
        try:
            if self._known_version() == latest_version():
                return
            hint = _WRITE_ONCE if os.access(self.path, os.W_OK) else ""
            raise StoreReadOnly(self.path.parent, "the database has an older schema and must be changed", hint=hint)
        except StoreError:
            self.close()
            raise

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Commit all writes in the block, or none of them.

        The transaction takes the write lock at its start. Upgrading a read lock later could fail.
        """
        self.refuse_read_only()
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            # SQLite rolls back by itself after a full disk or a failed read.
            if self._connection.in_transaction:
                self.run("ROLLBACK")
            raise

    def refuse_read_only(self) -> None:
        """Raise `StoreReadOnly` in read-only mode."""
        if self.read_only:
            raise StoreReadOnly(self.path.parent)

    @contextmanager
    def step(self) -> Generator[None]:
        """Run the block as a savepoint of a transaction. If the block fails, undo only its writes."""
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
        """Run one statement, and return the row ID of the last insert."""
        self._reopen_if_changed()
        with translated_errors(self.path):
            self._connection.execute(sql, values)
        return self._connection.last_insert_rowid()

    def run_many(self, sql: str, rows: Iterable[tuple[Value, ...]]) -> None:
        """Run a statement once for each row of values."""
        values = list(rows)  # Do not translate errors that the caller's iterable raises.
        self._reopen_if_changed()
        with translated_errors(self.path):
            self._connection.executemany(sql, values)

    def insert(self, table: str, values: Mapping[str, Value]) -> int:
        """Insert a row, given as a mapping of columns to values, and return its row ID."""
        sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({placeholders(values)})"
        return self.run(sql, tuple(values.values()))

    def update(self, table: str, key: str, number: int, values: Mapping[str, Value]) -> None:
        """Update columns of the row in which the column `key` equals `number`."""
        settings = ", ".join(f"{column} = ?" for column in values)
        self.run(f"UPDATE {table} SET {settings} WHERE {key} = ?", (*values.values(), number))

    def upsert(self, table: str, key: str, values: Mapping[str, Value]) -> None:
        """Insert a row, or update the row that has the same values in the columns `key`, such as `agent, native_id`."""
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
                rows = self._read(sql, values)
            except StoreError:
                # Reading a file while it is replaced can look like damage.
                if not self._has_changed():
                    raise
            else:
                if not self._has_changed():
                    return rows
        raise StoreBusy(f"{self.path} was replaced repeatedly while it was read", hint="Try again in a moment.")

    def rows_among(self, sql: str, keys: Iterable[int], values: tuple[Value, ...] = ()) -> list[Row]:
        """Return the rows of a query whose first parameter is the list of keys.

        Outside a transaction, rows on damaged pages are omitted and their keys are added to `unreadable`. Inside a
        transaction, damaged rows raise `StoreCorrupt`, so that incomplete results cause no writes.
        """
        remaining = list(keys)
        try:
            return self.rows(sql, (listed(remaining), *values))
        except StoreCorrupt:
            if self._connection.in_transaction:
                raise
            if len(remaining) <= 1:
                self.unreadable.update(remaining)
                return []
        half = len(remaining) // 2
        return [*self.rows_among(sql, remaining[:half], values), *self.rows_among(sql, remaining[half:], values)]

    def one(self, sql: str, values: tuple[Value, ...] = ()) -> Row | None:
        """Return the first row of a query, or None if the result is empty."""
        rows = self.rows(sql, values)
        return rows[0] if rows else None

    def number(self, sql: str, values: tuple[Value, ...] = ()) -> int:
        """Return the first value of a query as an integer. NULL and an empty result become 0."""
        row = self.one(sql, values)
        return int(row[0] or 0) if row else 0

    def numbers(self, sql: str, values: tuple[Value, ...] = ()) -> list[int]:
        """Return the first column of a query as a list of integers."""
        return [row[0] for row in self.rows(sql, values)]

    def _read(self, sql: str, values: tuple[Value, ...]) -> list[Row]:
        with translated_errors(self.path):
            return cast("list[Row]", self._connection.execute(sql, values).fetchall())

    def _has_changed(self) -> bool:
        """Return whether the state of an unwritable file changed after SQLite opened it."""
        opened = self._unwritable
        if opened is None or self._connection.in_transaction:
            return False
        return _UnwritableFile.at(self.path, read_only=self.read_only) != opened

    def _reopen_if_changed(self) -> None:
        if self._has_changed():
            before, now = self._connection, self._reopen(self.path)
            self.__dict__.update(now.__dict__)
            before.close()

    def copy_to(self, path: Path) -> None:
        """Copy a consistent snapshot of the database into an empty file while other connections read and write."""
        with translated_errors(self.path), closing(connect(str(path), apsw.SQLITE_OPEN_READWRITE)) as target:
            if self._connection.reserve_bytes("main") == CHECKSUM_BYTES:
                # The VFS writes checksums only after it has read a first page that reserves bytes for them.
                target.reserve_bytes("main", CHECKSUM_BYTES)
                target.execute("PRAGMA user_version=1")
            with target.backup("main", self._connection, "main") as copying:
                copying.step(-1)
            target.execute("PRAGMA journal_mode=DELETE").fetchall()

    @staticmethod
    def problems(path: Path) -> list[str]:
        """Return the problems that SQLite's integrity check finds in a file, or an empty list for an intact file."""
        try:
            with closing(Database.open_read_only(path)) as database:
                problems = [str(row[0]) for row in database.rows("PRAGMA integrity_check")]
        except StoreCorrupt as error:
            return [str(error).removeprefix(f"{path}: ")]
        return [] if problems == ["ok"] else problems

    def close(self) -> None:
        """Close the connection. Further calls have no effect."""
        self._unwritable = None
        self._connection.close()


def listed(keys: Iterable[int] | Iterable[str]) -> str:
    """Return keys as the single parameter of the condition `AMONG`: a JSON array."""
    return json.dumps(list(keys))


def placeholders(values: Iterable[object]) -> str:
    """Return a question mark for each value, separated by commas."""
    return ",".join("?" for _ in values)


def _check_exists(path: Path) -> None:
    # SQLite treats an empty file as a new database, so a lost database would become an empty archive.
    if not path.is_file() or path.stat().st_size == 0:
        raise StoreMissing(path.parent, copies=Home(path.parent).has_copies)


def _check_last_page(path: Path) -> None:
    """Raise `StoreCorrupt` if the last page is incomplete and is not in the write-ahead log.

    SQLite reads the missing bytes of this page as zeros and does not verify its checksum. If SQLite then wrote the
    page, the zeros would get a valid checksum.
    """
    with suppress(FileNotFoundError):
        if path.stat().st_size % PAGE_BYTES and not has_log(path):
            raise corrupt(path, "its last page is incomplete")


_MARK: Final = b"\x01sealed-"
"""Beginning of an encrypted part. File names begin with a control character only in attacks."""
_NONCE: Final = 16
_SEPARATOR: Final = os.sep.encode()
_COLUMNS: Final = (
    ("source", "path"),
    ("problem", "path"),
    ("container", "path"),
    ("document", "path"),
    ("former_path", "path"),
    ("queued_file", "path"),
    ("queued_file", "root"),
    ("watched_folder", "path"),
)
"""Columns with paths."""


class PathSeal:
    """Conversion of paths to and from the bytes in the database."""

    def __init__(self, database: Database) -> None:
        self._db, self._known_key = database, b""

    def stored(self, path: Path) -> bytes:
        """Return the bytes that stand for a path in the database."""
        value = os.fsencode(path)
        if not name_may_contain_secret(str(path)) or self._redacted(str(path)) == str(path) or not self._key:
            return value
        parts = value.split(_SEPARATOR)
        secret = [bool(part) and self._redacted(os.fsdecode(part)) != os.fsdecode(part) for part in parts]
        return _SEPARATOR.join(
            self._sealed(part) if hit or (not any(secret) and part) else part
            for part, hit in zip(parts, secret, strict=True)
        )

    def path(self, value: bytes) -> Path:
        """Return the path that these bytes stand for. Without the key, an encrypted part stays encrypted."""
        if _MARK in value and self._key:
            value = _SEPARATOR.join(
                self._opened(part) if part.startswith(_MARK) else part for part in value.split(_SEPARATOR)
            )
        return Path(os.fsdecode(value))

    def is_outdated(self) -> bool:
        """Return whether older rules were applied to the stored names."""
        return bool(self._key) and self._db.one("SELECT rules FROM redacted_names") != (VERSION,)

    def renew(self) -> None:
        """Apply the current rules to stored names, inside a transaction."""
        for table, column in _COLUMNS:
            for (value,) in self._db.rows(f"SELECT DISTINCT {column} FROM {table}"):
                if (sealed := self.stored(self.path(value))) != value:
                    self._db.run(f"UPDATE OR IGNORE {table} SET {column} = ? WHERE {column} = ?", (sealed, value))
        for column in ("session_id", "project"):
            for (name,) in self._db.rows(f"SELECT DISTINCT {column} FROM injection"):
                if (clean := self.name(name)) != name:
                    self._db.run(f"UPDATE injection SET {column} = ? WHERE {column} = ?", (clean, name))
        self._db.run("DELETE FROM redacted_names")
        self._db.run("INSERT INTO redacted_names (rules) VALUES (?)", (VERSION,))

    def name(self, name: str) -> str:
        """Return a name with placeholders in place of secrets."""
        return self._redacted(name) if self._key and name_may_contain_secret(name) else name

    @property
    def _key(self) -> bytes:
        """The key of the archive. It is empty until the first content is archived."""
        if not self._known_key and (home := Home(self._db.path.parent)).key_file.is_file():
            self._known_key = home.key()
        return self._known_key

    @cached_property
    def _redactor(self) -> Redactor:
        return Redactor(self._key or os.urandom(32))

    def _redacted(self, name: str) -> str:
        return self._redactor.redact_name(name)

    def _sealed(self, part: bytes) -> bytes:
        nonce = self._digest(b"path", part)[:_NONCE]
        return _MARK + base64.urlsafe_b64encode(nonce + self._crypted(nonce, part))

    def _opened(self, part: bytes) -> bytes:
        try:
            data = base64.urlsafe_b64decode(part.removeprefix(_MARK))
        except ValueError:
            return part
        plain = self._crypted(data[:_NONCE], data[_NONCE:])
        return plain if self._digest(b"path", plain)[:_NONCE] == data[:_NONCE] else part

    def _crypted(self, nonce: bytes, data: bytes) -> bytes:
        """Combine data with a stream of pseudo-random bytes. Doing so twice returns the data."""
        return bytes(byte ^ key_byte for byte, key_byte in zip(data, self._stream(nonce), strict=False))

    def _stream(self, nonce: bytes) -> Iterator[int]:
        for number in count():
            yield from self._digest(b"stream", nonce + number.to_bytes(4, "big"))

    def _digest(self, purpose: bytes, data: bytes) -> bytes:
        return hmac.digest(self._key, purpose + b"\0" + data, "sha256")
