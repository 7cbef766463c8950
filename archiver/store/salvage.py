"""Salvage: replace a damaged database with a new database that contains all readable rows.

Rows come from three sources, in this order:

1. Pages of the damaged file that match their checksums.
2. Other pages of the damaged file, for memories whose content matches its SHA-256. These memories may be newer than any
   backup.
3. The readable rows of the backups, for row IDs that neither of these sources provides. An older backup is read only
   for row IDs that are unreadable in all newer ones, because rows that a newer one lacks were deleted.
4. Other pages of the backups, for memories as in 2.

Afterwards the caller reads conversations again from the raw copies and rebuilds the index.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final, NamedTuple, cast

import apsw
from msgspec import Struct, field

from ...core.errors import StoreBusy, StoreCorrupt, StoreError
from ...core.home import Home
from ...core.memory import StoredMemory
from ...core.runtime import sync_path
from . import backups as watermark
from .backups import Backups, extracted, highest_reserved, stamp
from .database import (
    CHECKSUM_BYTES,
    FIRST_VERSION,
    PAGE_BYTES,
    Row,
    Value,
    connect,
    database_files,
    has_rowid,
    latest_version,
    open_exclusively,
    schema_sql,
    tables,
)
from .memory_table import decoded, verified
from .migration import convert, old_schema_sql

_MAX_ROW_ID: Final = 1 << 40
"""Number that is larger than every row ID in use."""
_START_OVER: Final = (
    "Move palaver.db, palaver.db-wal and palaver.db-shm to another folder, then run "
    "`palaver rebuild --from-archive`. This restores conversations, but not memories."
)
_SKIPPED_TABLES: Final = {"lease", "publication"}
"""Tables that are not copied: the new database has no lease holders, and no index was built from it."""
_NOT_RESTORED: Final = {"trusted_folder"}
"""Tables that are not restored from a backup, because a revoked permission must not return."""
_PLAIN_VFS: Final = "unix"
"""SQLite's own file system layer, which does not verify checksums."""
_LOG_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24
_TABLE_LEAF: Final = 13
"""First byte of each page that contains rows of a table (https://sqlite.org/fileformat2.html, "b-tree pages")."""

_REFERENCES: Final = """SELECT "table", group_concat("from", ', ' ORDER BY seq),
        coalesce(group_concat("to", ', ' ORDER BY seq), (
            SELECT group_concat(name, ', ' ORDER BY pk) FROM pragma_table_info("table") WHERE pk > 0
        ))
    FROM pragma_foreign_key_list(?) GROUP BY "table", id"""
"""SQL query for the foreign keys of a table: the parent table, the key's columns, and the parent's columns."""


class Salvaged(Struct):
    """Result of a salvage. Memories are listed by key. Other rows are counted by table."""

    kept: Path
    """New path of the damaged file, if there was one."""
    rows: int = 0
    restored: dict[str, int] = field(default_factory=dict[str, int])
    """Number of rows from the backups, by table."""
    unverified: list[int] = field(default_factory=list[int])
    """Memories read from damaged pages. Only their content was verified, not their other fields."""
    lost: list[int] = field(default_factory=list[int])
    """Memories that are missing from all sources."""
    unknown_losses: bool = False
    """True if the keys of lost memories cannot be determined, so `lost` may be incomplete."""


class _Gap(NamedTuple):
    """Range of unreadable rows, given by the first and the last row ID (inclusive)."""

    first: int
    last: int


_ALL_ROWS: Final = _Gap(0, _MAX_ROW_ID - 1)


class _Backup(NamedTuple):
    """Open backup, which can be damaged."""

    path: Path
    connection: apsw.Connection


def salvage(home: Home) -> Salvaged:
    """Replace a damaged database with a salvaged database, and move the damaged file to the backups.

    A missing database is restored from the backups.

    Raises:
        StoreBusy: Another process has the database open.
        StoreCorrupt: No row is readable and no backup exists. Nothing is changed.
    """
    home.backups.mkdir(mode=0o700, exist_ok=True)
    done, is_lost = Salvaged(home.backups / f"damaged-{stamp()}.db"), not home.has_database
    if not is_lost:
        try:
            open_exclusively(home.database).close()
        except StoreBusy:
            raise
        except StoreError:
            pass  # No process can open a file with this damage.
        # SQLite fills an incomplete last page with zeros, and a new checksum would certify the zeros.
        os.truncate(home.database, home.database.stat().st_size + -home.database.stat().st_size % PAGE_BYTES)
    fresh = home.database.with_name(f"{home.database.name}.new")
    for path in database_files(fresh):
        path.unlink(missing_ok=True)
    _fill(fresh, home, done)
    if not done.rows:
        fresh.unlink()
        raise StoreCorrupt(f"{home.database}: no data is readable and no backup exists", hint=_START_OVER)
    if not is_lost:
        os.link(home.database, done.kept)
    for path, kept in zip(database_files(home.database)[1:], database_files(done.kept)[1:], strict=True):
        with suppress(FileNotFoundError):
            path.replace(kept)
    fresh.replace(home.database)
    watermark.reset(home)
    sync_path(home.root)
    return done


def memories_in_logs(home: Home) -> list[StoredMemory]:
    """Return the verified memories in saved write-ahead logs, including pages that SQLite ignores after damage."""
    with closing(_open(home.database)) as connection:
        logs = sorted(home.backups.glob("lost-*.db-wal"))
        rows = [row for log in logs for row in _memory_rows(connection, home.database, log, whole=False)]
    return list({stored.memory.content_hash: stored for stored in map(decoded, rows)}.values())


def _fill(fresh: Path, home: Home, done: Salvaged) -> None:
    fresh.touch(mode=0o600)
    with ExitStack() as opened:
        lost = not home.has_database
        damaged = opened.enter_context(closing(apsw.Connection(":memory:") if lost else _open(home.database)))
        target = opened.enter_context(closing(connect(str(fresh), apsw.SQLITE_OPEN_READWRITE)))
        folder = Path(opened.enter_context(TemporaryDirectory(dir=home.backups)))
        paths = [path for backup in Backups(home).all() if (path := extracted(backup, folder)).stat().st_size]
        versions = [version for version in map(_version, (home.database, *paths)) if version]
        version = versions[0] if versions else latest_version()
        backups = [_Backup(path, opened.enter_context(closing(_open_backup(path, version, folder)))) for path in paths]
        target.reserve_bytes("main", CHECKSUM_BYTES)
        target.execute(schema_sql(0, version) if version >= FIRST_VERSION else old_schema_sql(version))
        target.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        target.execute("PRAGMA foreign_keys=OFF; BEGIN")
        for table in [name for name in tables(target) if name not in _SKIPPED_TABLES]:
            done.rows += _TableCopy(target, table, backups, done).run(damaged, home.database)
        _repair_references(target)
        if lost:  # The number of issued IDs is unknown.
            reserved = (highest_reserved(home.numbers),)
            target.execute("UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'item'", reserved)
        target.execute("UPDATE source SET rules = ''; COMMIT")


class _TableCopy:
    """Copy of one table from the damaged database and the backups to a new database."""

    def __init__(self, target: apsw.Connection, table: str, backups: Sequence[_Backup], done: Salvaged) -> None:
        self._target, self._table, self._backups, self._done = target, table, backups, done
        self._columns = _columns(target, table)
        self._gaps = list[_Gap]()

    def run(self, damaged: apsw.Connection, path: Path) -> int:
        """Copy the readable rows, then fill the gaps from other sources. Return the number of copied rows."""
        table, before = self._table, 0
        if not has_rowid(self._target, table):
            is_complete = self._copy_keyed(damaged)
            before = self._count()
            if not is_complete and table not in _NOT_RESTORED:
                any(self._copy_keyed(backup.connection) for backup in self._backups)
        else:
            self._copy_rows(damaged, [_ALL_ROWS])
            self._done.unverified += self._copy_memory_pages(path)
            before, has_gaps = self._count(), bool(self._gaps)
            unreadable = list[tuple[Path, list[_Gap]]]()
            for backup in self._backups if has_gaps else ():
                self._copy_rows(backup.connection, self._gaps)
                unreadable.append((backup.path, self._gaps))
            for (
                backup_path,
                self._gaps,
            ) in unreadable:  # An older backup may lack the rows of a newer one.
                self._done.unverified += self._copy_memory_pages(backup_path)
            if table == "memory" and has_gaps:
                self._gaps = unreadable[0][1] if unreadable else self._gaps
                self._note_lost(damaged)
        total = self._count()
        if total > before:
            self._done.restored[table] = total - before
        return total

    def _copy_keyed(self, source: apsw.Connection) -> bool:
        """Copy the readable rows of a table without row IDs, and return whether all rows were readable."""
        columns = self._columns_in(source)
        if not columns:
            return False
        ends = _Ends(source, self._table, columns)
        self._target.executemany(self._insert(columns), ends)
        return ends.is_complete

    def _copy_rows(self, source: apsw.Connection, ranges: Sequence[_Gap]) -> None:
        """Copy the rows in some ranges. Keep the ranges in which rows are unreadable as the new gaps."""
        columns = self._columns_in(source)
        if not columns:  # The definition of the table is unreadable, or the backup is older than the table.
            self._gaps = list(ranges)
            return
        gaps = list[_Gap]()
        read = f"SELECT rowid, {', '.join(columns)} FROM {self._table}"
        for gap in ranges:
            readable: Iterator[Row] = (row[1:] for row in _scan(source, read, gaps, gap))
            if self._table == "memory" and columns == self._columns:
                readable = _intact_memories(readable, columns, gaps)
            self._target.executemany(self._insert(columns), readable)
        self._gaps = gaps

    def _copy_memory_pages(self, path: Path) -> list[int]:
        """Copy memories in the gaps from damaged pages of a database, and return their keys."""
        copied = list[int]()
        if self._table != "memory" or not self._gaps or not path.exists():
            return copied
        for row in _memory_rows(self._target, path, database_files(path)[1], whole=True):
            key = cast("int", row["item"])
            if self._is_gap(key):
                self._target.execute(self._insert(self._columns), tuple(row[name] for name in self._columns))
                copied += [key] * self._target.changes()
        return copied

    def _note_lost(self, damaged: apsw.Connection) -> None:
        """Record the memories that an index of the damaged database lists, or that no backup can read."""
        listed = _indexed_memories(damaged)
        self._done.unknown_losses = listed is None
        for backup in self._backups:
            listed = (listed or set()) | {
                key for key in _indexed_memories(backup.connection) or () if self._is_gap(key)
            }
        present = {key for (key,) in self._target.execute("SELECT item FROM memory")}
        self._done.lost = sorted((listed or set()) - present)

    def _is_gap(self, key: int) -> bool:
        return any(gap.first <= key <= gap.last for gap in self._gaps)

    def _columns_in(self, source: apsw.Connection) -> list[str]:
        """Return the columns that a source has too. An older backup lacks newer columns."""
        with suppress(apsw.Error, UnicodeDecodeError):
            columns = set(_columns(source, self._table))
            return [column for column in self._columns if column in columns]
        return []

    def _insert(self, columns: Sequence[str]) -> str:
        values = ", ".join("?" * len(columns))
        return f"INSERT OR IGNORE INTO {self._table} ({', '.join(columns)}) VALUES ({values})"

    def _count(self) -> int:
        return int(self._target.execute(f"SELECT count(*) FROM {self._table}").get)


def _intact_memories(rows: Iterator[Row], columns: Sequence[str], gaps: list[_Gap]) -> Iterator[Row]:
    """Yield the memories that match their SHA-256, and record every other memory as a gap.

    A mismatch means that an overflow page was filled with zeros, which have a valid checksum.
    """
    for row in rows:
        values = dict(zip(columns, row, strict=True))
        if verified(values) == values:
            yield row
        else:
            gaps.append(_Gap(values["item"], values["item"]))


def _scan(connection: apsw.Connection, read: str, gaps: list[_Gap], within: _Gap = _ALL_ROWS) -> Iterator[Row]:
    """Yield the readable rows of a table in a range of row IDs, each beginning with its row ID.

    Append the unreadable ranges to `gaps`.
    """
    first = within.first
    while True:
        try:
            for row in connection.execute(f"{read} WHERE rowid BETWEEN ? AND ? ORDER BY rowid", (first, within.last)):
                yield row
                first = cast("int", row[0]) + 1
        except (apsw.Error, UnicodeDecodeError):
            following = _next_readable(connection, read, first)
            gaps.append(_Gap(first, min(following - 1, within.last)))
            if following > within.last:
                return
            first = following
        else:
            return


def _next_readable(connection: apsw.Connection, read: str, bad: int) -> int:
    """Return the end of a gap: the first row ID after `bad` from which the next row is readable.

    The search doubles its steps until a row is readable, then halves them.
    """

    def is_readable(first: int) -> bool:
        try:
            connection.execute(f"{read} WHERE rowid >= ? ORDER BY rowid LIMIT 1", (first,)).fetchall()
        except (apsw.Error, UnicodeDecodeError):
            return False
        return True

    step = 1
    while not is_readable(bad + step):
        step *= 2
        if bad + step >= _MAX_ROW_ID:
            return _MAX_ROW_ID
    low, high = bad + step // 2, bad + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_readable(middle) else (middle, high)
    return high


class _Ends:
    """Readable rows of a table without row IDs, from both ends up to the first damaged page.

    `is_complete` is true if no page is damaged.
    """

    def __init__(self, connection: apsw.Connection, table: str, columns: Sequence[str]) -> None:
        self._connection, self._table, self._columns = connection, table, columns
        self.is_complete = False

    def __iter__(self) -> Iterator[Row]:
        key = "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk"
        with suppress(apsw.Error, UnicodeDecodeError):
            names = [str(name) for (name,) in self._connection.execute(key, (self._table,))]
            for direction in ("", " DESC"):
                order = ", ".join(f"{name}{direction}" for name in names)
                with suppress(apsw.Error, UnicodeDecodeError):
                    yield from self._connection.execute(
                        f"SELECT {', '.join(self._columns)} FROM {self._table} ORDER BY {order}"
                    )
                    self.is_complete = True
                    return


def _memory_rows(schema: apsw.Connection, database: Path, log: Path, *, whole: bool) -> Iterator[dict[str, Value]]:
    """Yield the verified memories on the pages of a write-ahead log. With `whole`, include the pages of its database.

    SQLite decodes each page. For this purpose, the function copies all pages to a temporary database with a table
    `memory` like that of `schema`. Each page in turn then becomes the only page of this table. Because all pages keep
    their page numbers, SQLite finds the overflow pages of long rows.
    """
    columns = _columns(schema, "memory")
    read = f"SELECT rowid, {', '.join(columns)} FROM memory"
    with TemporaryDirectory(dir=log.parent) as folder:
        scratch = Path(folder) / "scratch.db"
        with closing(apsw.Connection(str(scratch), vfs=_PLAIN_VFS)) as made:
            made.reserve_bytes("main", CHECKSUM_BYTES)
            made.execute(str(schema.execute("SELECT sql FROM sqlite_schema WHERE name = 'memory'").get))
        first = scratch.read_bytes()[:PAGE_BYTES]
        shutil.copyfile(database, scratch)
        with scratch.open("r+b") as file:
            logged = _copy_log(log, file)
            last = file.seek(0, os.SEEK_END) // PAGE_BYTES
            _put(file, 1, first[:28] + bytes(4) + first[32:])  # With a page count of 0, SQLite uses the file size.
            for number in range(2, last + 1) if whole else logged:
                file.seek((number - 1) * PAGE_BYTES)
                page = file.read(PAGE_BYTES)
                if page[0] == _TABLE_LEAF:
                    _put(file, 2, page)
                    with closing(
                        apsw.Connection(str(scratch), apsw.SQLITE_OPEN_READONLY, vfs=_PLAIN_VFS)
                    ) as connection:
                        rows = [dict(zip(columns, row[1:], strict=True)) for row in _scan(connection, read, [])]
                    yield from filter(None, map(verified, rows))


def _copy_log(log: Path, file: BinaryIO) -> list[int]:
    """Write the pages of a write-ahead log to their positions in a database. Return their sorted page numbers.

    Include pages after a damaged frame. Omit pages that were written before the last checkpoint.
    """
    data = log.read_bytes() if log.exists() else b""
    frame = _FRAME_HEADER_BYTES + PAGE_BYTES
    most = (file.seek(0, os.SEEK_END) + len(data)) // PAGE_BYTES
    current = {data[16:24], data[40:48]}
    """Salts of the log's header and of its first frame."""
    numbers = set[int]()
    for start in range(_LOG_HEADER_BYTES, len(data) - _FRAME_HEADER_BYTES, frame):
        number = int.from_bytes(data[start : start + 4], "big")
        if data[start + 8 : start + 16] in current and 1 < number <= most:
            _put(file, number, data[start + _FRAME_HEADER_BYTES : start + frame].ljust(PAGE_BYTES, b"\0"))
            numbers.add(number)
    return sorted(numbers)


def _put(file: BinaryIO, number: int, page: bytes) -> None:
    file.seek((number - 1) * PAGE_BYTES)
    file.write(page)
    file.flush()


def _columns(connection: apsw.Connection, table: str) -> list[str]:
    return [str(name) for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]


def _indexed_memories(connection: apsw.Connection) -> set[int] | None:
    """Return the keys of all memories, as listed in SQLite's index `memory_created`.

    The index can be readable although the table is damaged. Return None if the index is unreadable.
    """
    with suppress(apsw.Error):
        return {key for (key,) in connection.execute("SELECT item FROM memory INDEXED BY memory_created")}
    return None


def _repair_references(target: apsw.Connection) -> None:
    """Repair references between tables after the loss of rows.

    Add the missing rows of memories in `item`. Clear other references to lost rows, or delete a row whose reference
    must not be NULL.
    """
    target.execute("INSERT OR IGNORE INTO item (key, kind, at) SELECT item, 'memory', created FROM memory")
    changed = -1
    while changed != target.total_changes():
        changed = target.total_changes()
        for table in tables(target):
            for parent, columns, keys in target.execute(_REFERENCES, (table,)).fetchall():
                present = " AND ".join(f"{column} NOT NULL" for column in str(columns).split(", "))
                lost = f"{present} AND ({columns}) NOT IN (SELECT {keys} FROM {parent})"
                nulls = ", ".join("NULL" for _ in str(columns).split(", "))
                try:
                    target.execute(f"UPDATE {table} SET ({columns}) = (SELECT {nulls}) WHERE {lost}")
                except (apsw.ConstraintError, apsw.MismatchError):  # NULL is not allowed, or is no row ID.
                    target.execute(f"DELETE FROM {table} WHERE {lost}")


def _open(path: Path) -> apsw.Connection:
    """Open a damaged or truncated database for reading. Tables with an unreadable definition are ignored."""
    connection = connect(str(path), apsw.SQLITE_OPEN_READONLY)
    with suppress(apsw.Error):
        connection.execute("PRAGMA writable_schema=ON").fetchall()
    return connection


def _open_backup(path: Path, version: int, folder: Path) -> apsw.Connection:
    """Open a backup for reading.

    If the salvaged database gets the current schema, open a converted copy of a backup with an earlier schema. The copy
    is written to `folder`.
    """
    if version >= FIRST_VERSION > _version(path) > 0:
        with suppress(StoreError), closing(open_exclusively(path)) as old:
            convert(old, path, folder / path.name)
            return _open(folder / path.name)
    return _open(path)


def _version(path: Path) -> int:
    """Return the version of the schema of a database, or 0 if it is missing or unreadable."""
    if path.exists():
        with suppress(apsw.Error), closing(_open(path)) as connection:
            return int(connection.execute("PRAGMA user_version").get)
    return 0
