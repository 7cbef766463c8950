"""The connection: pragmas, transactions, and SQLite's errors put into ours."""

import json
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, Self, cast

import apsw

from ...core.errors import (
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFromFuture,
    StoreMissing,
    StoreReadOnly,
    ValueRefused,
)
from ...core.home import Home
from .foreign_file import ForeignFile, has_log
from .migrations import MIGRATIONS

Value = str | bytes | int | float | None
Row = tuple[Value, ...]

AMONG: Final = "IN (SELECT value FROM json_each(?))"
"""How a statement asks for however many keys: `listed` makes one value of them."""
REPAIR_HINT: Final = "Run `palaver fsck --repair`: it saves what can still be read."
_BUSY_MS = 30_000
_TRIES = 10
"""How often a query is made of a file that each time was changed meanwhile."""
_CHECKPOINT = 4_000
"""Pages of the log, 4 KiB each, from which on they are written where they belong: a page that changes again and again
while much is stored is so written fewer times.
"""
PAGE_BYTES: Final = 4_096
"""Bytes of a page."""
CHECKSUM_BYTES = 8
"""Bytes at the end of each page in which the checksum VFS keeps its checksum."""
_WAL_SAFE = ((3, 51, 3), (3, 50, 7), (3, 44, 6))
"""First releases of each branch without the WAL-reset race (SQLite WAL documentation, "the WAL-reset bug")."""


class Database:
    """One SQLite connection. Not for several threads at once."""

    def __init__(self, connection: apsw.Connection, path: Path, file: ForeignFile | None = None) -> None:
        """`file` is what was opened, where it has to be compared with what is there."""
        self._connection, self._file = connection, file
        self.path = path
        self.unreadable: set[int] = set()
        """Keys of items that were asked for and lie on damaged pages."""
        self._again: Callable[[], Database] = lambda: self.open_read_only(path)
        """Opens what is there now, the same way."""

    @classmethod
    def create(cls, path: Path) -> Self:
        """Open the file, making it if there is none, and bring its schema up to date."""
        return cls._open(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an existing file; raises `StoreMissing`: a wrong path makes no empty archive."""
        _check(path)
        return cls._open(path, apsw.SQLITE_OPEN_READWRITE)

    @classmethod
    def open_read_only(cls, path: Path) -> Self:
        """Open an existing file to be read only, and change nothing about it; raises `StoreMissing`."""
        _check(path)
        _refuse_cut(path)
        file = ForeignFile.at(path)
        still = file is not None and file.still
        name = f"{path.absolute().as_uri()}?immutable=1" if still else str(path)
        with _translated(path):
            flags = apsw.SQLITE_OPEN_READONLY | (apsw.SQLITE_OPEN_URI if still else 0)
            connection = connect(name, flags)
            connection.set_busy_timeout(_BUSY_MS)
        return cls(connection, path, file)

    @classmethod
    def _open(cls, path: Path, flags: int) -> Self:
        file = ForeignFile.at(path)
        made = cls.open_read_only(path)._as_known() if file and file.still else cls._open_to_write(path, flags, file)  # noqa: SLF001 - one of ours
        made._again = lambda: cls._open(path, flags & ~apsw.SQLITE_OPEN_CREATE)  # noqa: SLF001 - one of ours
        return made

    @classmethod
    def _open_to_write(cls, path: Path, flags: int, file: ForeignFile | None) -> Self:
        _refuse_cut(path)
        with _translated(path):
            connection = connect(str(path), flags)
            try:
                connection.set_busy_timeout(_BUSY_MS)
                # A new file has page checksums at once, an existing one from its next VACUUM on.
                connection.reserve_bytes("main", CHECKSUM_BYTES)
                if flags & apsw.SQLITE_OPEN_CREATE and file is None:
                    # Before the files beside it are made: they take their rights from this one.
                    path.chmod(path.stat().st_mode & 0o600)
                database = cls(connection, path, file)
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
        run(f"PRAGMA wal_autocheckpoint={_CHECKPOINT}").fetchall()
        self._migrate()

    @property
    def schema(self) -> tuple[int, int]:
        """How many steps of the schema the file has seen, and how many there are."""
        return self._version(), len(MIGRATIONS)

    @property
    def has_checksums(self) -> bool:
        """True if every page has a checksum, which each read verifies."""
        return self.one("PRAGMA checksum_verification") == ("1",)

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be written."""
        return self._connection.readonly("main")

    def _version(self) -> int:
        return self.number("PRAGMA user_version")

    def _as_known(self) -> Self:
        """This file, which may only be read; raises where it has not the schema that is read here."""
        if self._known_version() < len(MIGRATIONS):
            self.close()
            why = "the database is of an older Palaver and has to be brought up to date"
            raise StoreReadOnly(self.path.parent, why)
        return self

    def _known_version(self) -> int:
        version = self._version()
        if version > len(MIGRATIONS):
            from ...core.installation import upgrade_hint

            raise StoreFromFuture(
                f"{self.path} has schema {version}, this Palaver knows {len(MIGRATIONS)}", hint=upgrade_hint()
            )
        return version

    def _migrate(self) -> None:
        if self._version() == len(MIGRATIONS):
            return
        with self.transaction():
            for step in MIGRATIONS[self._known_version() :]:
                self._connection.execute(step)
            self._connection.execute(f"PRAGMA user_version={len(MIGRATIONS)}")

    @contextmanager
    def transaction(self) -> Generator[None]:
        """All or nothing. Takes the write lock at once, so that no reader has to be upgraded half-way."""
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            # SQLite has rolled back by itself after a full disk or a failed read.
            if self._connection.in_transaction:
                self.run("ROLLBACK")
            raise

    @contextmanager
    def step(self) -> Generator[None]:
        """A part of a transaction that is undone alone when it fails."""
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
        """Run one statement; the row id of the last insert."""
        self._follow()
        with _translated(self.path):
            self._connection.execute(sql, values)
        return self._connection.last_insert_rowid()

    def run_many(self, sql: str, rows: list[tuple[Value, ...]]) -> None:
        """Run one statement for each row."""
        self._follow()
        with _translated(self.path):
            self._connection.executemany(sql, rows)

    def rows(self, sql: str, values: tuple[Value, ...] = ()) -> list[Row]:
        """All rows of a query."""
        for _ in range(_TRIES):
            self._follow()
            try:
                found = self._read(sql, values)
            except StoreError:
                # Of a file that was being written anything can have been read, also what looks like damage.
                if not self._is_other():
                    raise
            else:
                if not self._is_other():
                    return found
        raise StoreBusy(f"{self.path} changed again and again while it was read", hint="Try again in a moment.")

    def rows_among(self, sql: str, keys: Iterable[int], values: tuple[Value, ...] = ()) -> list[Row]:
        """Return the rows of a query by keys, which are its first value.

        Outside a transaction, rows on damaged pages are left out and their keys added to `unreadable`. Inside one they
        raise `StoreCorrupt`: nothing is written on the strength of a part.
        """
        asked = list(keys)
        try:
            return self.rows(sql, (listed(asked), *values))
        except StoreCorrupt:
            if self._connection.in_transaction:
                raise
            if len(asked) <= 1:
                self.unreadable.update(asked)
                return []
        half = len(asked) // 2
        return [*self.rows_among(sql, asked[:half], values), *self.rows_among(sql, asked[half:], values)]

    def _read(self, sql: str, values: tuple[Value, ...]) -> list[Row]:
        with _translated(self.path):
            return cast("list[Row]", self._connection.execute(sql, values).fetchall())

    def _is_other(self) -> bool:
        """Whether what was opened is no longer what is there, and SQLite does not see it."""
        known = self._file
        return known is not None and not self._connection.in_transaction and ForeignFile.at(self.path) != known

    def _follow(self) -> None:
        """Open anew what somebody else changed: SQLite looks at no change of what it took for unchanging."""
        if self._is_other():
            before, now = self._connection, self._again()
            self.__dict__.update(now.__dict__)
            before.close()

    def one(self, sql: str, values: tuple[Value, ...] = ()) -> Row | None:
        """The first row of a query."""
        found = self.rows(sql, values)
        return found[0] if found else None

    def number(self, sql: str, values: tuple[Value, ...] = ()) -> int:
        """The first value of a query as an integer; 0 when there is none."""
        row = self.one(sql, values)
        return int(row[0]) if row and isinstance(row[0], int | float) else 0

    def copy_to(self, path: Path) -> None:
        """Copy the whole database into an empty file, of one state, while others read and write it."""
        with _translated(self.path), closing(connect(str(path), apsw.SQLITE_OPEN_READWRITE)) as target:
            if self._connection.reserve_bytes("main") == CHECKSUM_BYTES:
                # The VFS writes checksums once it has seen a first page that reserves room for them.
                target.reserve_bytes("main", CHECKSUM_BYTES)
                target.execute("PRAGMA user_version=1")
            with target.backup("main", self._connection, "main") as copying:
                copying.step(-1)
            target.execute("PRAGMA journal_mode=DELETE").fetchall()

    @staticmethod
    def problems(path: Path) -> list[str]:
        """Return what SQLite's integrity check finds wrong with a file, empty for a sound one."""
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
        for step in MIGRATIONS[:version]:
            connection.execute(step)
        connection.execute(f"PRAGMA user_version={version}")

    def close(self) -> None:
        """Close the connection; calling it twice is fine."""
        self._file = None
        self._connection.close()


def connect(name: str, flags: int) -> apsw.Connection:
    """Open a file through SQLite's checksum VFS (https://sqlite.org/cksumvfs.html), which apsw's wheels bring along.

    Loading it takes 0.4 ms, and makes it the default of this process. It leaves files without checksums alone.
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


def _check(path: Path) -> None:
    # SQLite takes a file of no bytes for a new database, and would make what was lost an empty archive.
    if not path.is_file() or path.stat().st_size == 0:
        raise StoreMissing(path.parent, copies=Home(path.parent).has_copies)


def _refuse_cut(path: Path) -> None:
    """Raise `StoreCorrupt` where the last page is incomplete and no log has it.

    SQLite fills such a page with zeros and compares no checksum; writing to it would give the zeros a valid one.
    """
    with suppress(FileNotFoundError):
        if path.stat().st_size % PAGE_BYTES and not has_log(path):
            raise _corrupt(path, "its last page is incomplete")


def listed(keys: Iterable[int] | Iterable[str]) -> str:
    """The keys as the one value that `AMONG` takes."""
    return json.dumps(list(keys))


def sqlite_version() -> str:
    """The version of SQLite that holds everything."""
    return apsw.sqlite_lib_version()


def is_wal_safe() -> bool:
    """Whether this SQLite never loses rows of its write-ahead log."""
    return _wal_is_safe(sqlite_version())


def _wal_is_safe(version: str) -> bool:
    numbers = tuple(int(part) for part in version.split("."))
    return numbers >= _WAL_SAFE[0] or any(numbers[:2] == safe[:2] and numbers >= safe for safe in _WAL_SAFE[1:])


def _corrupt(path: Path, reason: str) -> StoreCorrupt:
    return StoreCorrupt(f"{path}: {reason}", hint=REPAIR_HINT)


@contextmanager
def _translated(path: Path) -> Generator[None]:
    """The one boundary where SQLite's errors become ours. Busy is never taken for corruption.

    Never wrap it around code of others: their `ValueError`s would be taken for values that cannot be bound.
    """
    try:
        yield
    except apsw.BusyError as error:
        raise StoreBusy(
            f"{path} stayed locked for {_BUSY_MS // 1000} s", hint="Another Palaver is writing; try again."
        ) from error
    except (apsw.ReadOnlyError, apsw.CantOpenError) as error:
        Home(path.parent).check_writable()
        raise StoreError(f"{path}: {error}", hint="Check who owns it and its rights.") from error
    except (apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError) as error:
        raise _corrupt(path, str(error)) from error
    except apsw.IOError as error:
        if getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA:
            raise _corrupt(path, "a page does not match its checksum") from error
        raise StoreError(f"{path}: {error}", hint="Check the disk and free space, then try again.") from error
    except (OverflowError, ValueError) as error:
        raise ValueRefused(f"a value cannot be stored: {error}", hint="Please report which agent wrote it.") from error
    except apsw.Error as error:
        raise StoreError(f"{path}: {error}", hint="Check free space and permissions, then try again.") from error
