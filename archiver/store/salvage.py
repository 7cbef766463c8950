"""Salvage: a new database from all rows of a damaged one that can still be read.

Rows on damaged pages come from the newest backup that has them. A memory whose stored SHA-256 still matches its content
is taken from the damaged page itself, since it may be newer than any backup. What was read of copies, and the index, is
made again afterwards.
"""

import os
import shutil
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, cast

import apsw
from msgspec import Struct, field

from ...core.durability import sync_path
from ...core.errors import StoreBusy, StoreCorrupt
from ...core.home import Home
from ...core.memory import StoredMemory
from . import watermark
from .backups import Backups, stamp
from .database import PAGE, Database, Row, Value, connect
from .leaf_rows import leaf_rows
from .memory_table import checked, decoded
from .migrations import MIGRATIONS

_BEYOND: Final = 1 << 40
"""A row id that no table reaches."""
_ANEW: Final = (
    "Move palaver.db, palaver.db-wal and palaver.db-shm out of the way (keep them), then run "
    "`palaver rebuild --from-archive`: conversations come back, memories do not."
)
_LEFT_OUT: Final = {"lease", "publication", "sqlite_sequence"}
"""Tables that are not copied: nothing holds a lease, no published index is of the new database."""

_REFERENCES: Final = """SELECT "table", group_concat("from", ', ' ORDER BY seq),
        coalesce(group_concat("to", ', ' ORDER BY seq), (
            SELECT group_concat(name, ', ' ORDER BY pk) FROM pragma_table_info("table") WHERE pk > 0
        ))
    FROM pragma_foreign_key_list(?) GROUP BY "table", id"""
"""Of each foreign key of a table: the parent, its own columns, and those of the parent."""


class Salvaged(Struct):
    """Result of salvaging a damaged database. Memories are listed by key, other rows are counted by table."""

    kept: Path
    """New place of the damaged file."""
    rows: int = 0
    restored: dict[str, int] = field(default_factory=dict[str, int])
    """Rows taken from backups, by table."""
    unverified: list[int] = field(default_factory=list[int])
    """Memories read from a damaged page: their content is verified, other fields are not."""
    lost: list[int] = field(default_factory=list[int])
    """Memories that neither the file nor a backup gives."""
    unnamed: bool = False
    """True if memories may be lost whose keys cannot be read either."""


class _Gap(NamedTuple):
    """Row ids from `first` to `last` that could not be read."""

    table: str
    first: int
    last: int


def salvage(home: Home) -> Salvaged:
    """Put a salvaged database in the place of a damaged one, which is kept.

    Raises `StoreBusy` while others have it open, and `StoreCorrupt` where nothing can be read; then nothing changes.
    """
    _refuse_others(home.database)
    home.backups.mkdir(mode=0o700, exist_ok=True)
    done = Salvaged(home.backups / f"damaged-{stamp()}.db")
    # SQLite fills an incomplete last page by itself, but compares the checksum of a whole one.
    os.truncate(home.database, home.database.stat().st_size + -home.database.stat().st_size % PAGE)
    fresh = home.database.with_name(f"{home.database.name}.new")
    for path in _files(fresh):
        path.unlink(missing_ok=True)
    _fill(fresh, home, done)
    if not done.rows:
        fresh.unlink()
        raise StoreCorrupt(f"{home.database}: nothing in it can be read, and there is no backup", hint=_ANEW)
    os.link(home.database, done.kept)
    for path, kept in zip(_files(home.database)[1:], _files(done.kept)[1:], strict=True):
        with suppress(FileNotFoundError):
            path.replace(kept)
    fresh.replace(home.database)
    watermark.reset(home)
    sync_path(home.root)
    return done


def _refuse_others(path: Path) -> None:
    """Raise `StoreBusy` while another process has the database open: it would go on writing to the damaged file."""
    connection = connect(str(path), apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE; BEGIN EXCLUSIVE; ROLLBACK").fetchall()
    except apsw.BusyError as error:
        raise StoreBusy(f"{path} is in use", hint="End every Palaver and agent, then try again.") from error
    except apsw.Error:
        return  # too damaged to be opened by anybody
    finally:
        connection.close()


def _fill(fresh: Path, home: Home, done: Salvaged) -> None:
    backups = Backups(home).all()
    damaged = _with_schema(home.database, backups)
    sources = [_opened(path) for path in (damaged, *backups)]
    fresh.touch(mode=0o600)
    with closing(connect(str(fresh), apsw.SQLITE_OPEN_READWRITE)) as target:
        version = next((found for each in sources if (found := _version(each))), len(MIGRATIONS))
        Database.prepare_new(target, version)
        target.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        target.execute("PRAGMA foreign_keys=OFF; BEGIN")
        for table in _tables(target):
            done.rows += _copy_table(target, table, sources, home.database, done)
        _tidy(target)
        target.execute("UPDATE source SET rules = ''; COMMIT")
    for source in sources:
        source.close()
    if damaged != home.database:
        for path in _files(damaged):
            path.unlink(missing_ok=True)


def _with_schema(path: Path, backups: Sequence[Path]) -> Path:
    """Return the file itself, or, where its schema cannot be read, a copy with the schema pages of a backup.

    A backup has each table on the same pages: only VACUUM moves them, which comes before the first backup or removes
    all of them.
    """
    with closing(_opened(path)) as damaged, suppress(apsw.Error, UnicodeDecodeError):
        damaged.execute("SELECT * FROM sqlite_schema").fetchall()
        return path
    if not backups:
        return path
    patched = path.with_name(f"{path.name}.patched")
    for source, copied in zip(_files(path)[:2], _files(patched)[:2], strict=True):
        with suppress(FileNotFoundError):
            shutil.copy2(source, copied)
    with closing(_opened(backups[0])) as backup:
        size = cast(int, backup.execute("PRAGMA page_size").get)
        pages = [
            cast(int, page) for (page,) in backup.execute("SELECT pageno FROM dbstat WHERE name = 'sqlite_schema'")
        ]
    with backups[0].open("rb") as whole, patched.open("r+b") as file:
        for page in pages:
            whole.seek((page - 1) * size)
            data = whole.read(size)
            if page == 1:
                count = max(1, path.stat().st_size // size)
                data = _checked(data[:28] + count.to_bytes(4, "big") + data[32:])
            file.seek((page - 1) * size)
            file.write(data)
    return patched


def _checked(page: bytes) -> bytes:
    """Return a page with the checksum that SQLite's checksum VFS expects in its last 8 bytes (ext/misc/cksumvfs.c)."""
    first = second = 0
    for one, other in struct.iter_unpack("<II", page[:-8]):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + other + first) & 0xFFFFFFFF
    return page[:-8] + struct.pack("<II", first, second)


def _copy_table(
    target: apsw.Connection,
    table: str,
    sources: Sequence[apsw.Connection],
    path: Path,
    done: Salvaged,
) -> int:
    """Copy a table's readable rows, then fill its gaps; return how many rows of it there are."""
    damaged, *backups = sources
    columns = _columns(target, table)
    put = f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
    read = f"SELECT rowid, {', '.join(columns)} FROM {table}"
    gaps = list[_Gap]()
    if _has_rowid(target, table):
        target.executemany(put, (row[1:] for row in _scan(damaged, table, read, gaps)))
    else:
        target.executemany(put, _from_both_ends(damaged, table, columns))
    if table == "memory" and gaps:
        done.unverified = _take_memories(target, put, columns, gaps, path, _digests(damaged))
    before = _count(target, table)
    for backup in backups if gaps else ():
        for gap in gaps:
            within = f"{read} WHERE rowid BETWEEN ? AND ?"
            with suppress(apsw.Error):
                target.executemany(put, (row[1:] for row in backup.execute(within, (gap.first, gap.last))))
    total = _count(target, table)
    if total > before:
        done.restored[table] = total - before
    if table == "memory" and gaps:
        indexed = _indexed_memories(damaged)
        done.unnamed = indexed is None
        done.lost = sorted((indexed or set()) - _memories(target))
    return total


def _scan(connection: apsw.Connection, table: str, read: str, gaps: list[_Gap], first: int = 0) -> Iterator[Row]:
    """Yield the rows that can be read, each after its row id, and note the gaps between them."""
    while True:
        try:
            for row in connection.execute(f"{read} WHERE rowid >= ? ORDER BY rowid", (first,)):
                yield row
                first = cast(int, row[0]) + 1
        except (apsw.Error, UnicodeDecodeError):
            following = _next_readable(connection, read, first)
            gaps.append(_Gap(table, first, following - 1))
            if following == _BEYOND:
                return
            first = following
        else:
            return


def _next_readable(connection: apsw.Connection, read: str, bad: int) -> int:
    """Return the first row id after `bad` from which on the next row can be read: by doubling, then halving steps."""

    def is_readable(first: int) -> bool:
        try:
            connection.execute(f"{read} WHERE rowid >= ? ORDER BY rowid LIMIT 1", (first,)).fetchall()
        except (apsw.Error, UnicodeDecodeError):
            return False
        return True

    step = 1
    while not is_readable(bad + step):
        step *= 2
        if bad + step >= _BEYOND:
            return _BEYOND
    low, high = bad + step // 2, bad + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_readable(middle) else (middle, high)
    return high


def _from_both_ends(connection: apsw.Connection, table: str, columns: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of a table without row ids up to the first damaged page from either end."""
    key = "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk"
    with suppress(apsw.Error, UnicodeDecodeError):
        names = [str(name) for (name,) in connection.execute(key, (table,))]
        for direction in ("", " DESC"):
            order = ", ".join(f"{name}{direction}" for name in names)
            with suppress(apsw.Error, UnicodeDecodeError):
                yield from connection.execute(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}")
                return


def _take_memories(
    target: apsw.Connection,
    put: str,
    columns: Sequence[str],
    gaps: Sequence[_Gap],
    path: Path,
    digests: Mapping[int, str],
) -> list[int]:
    """Take the memories whose content has its SHA-256 from the file's pages; return their keys."""
    taken = list[int]()
    for row in _memory_rows(path, _files(path)[1], columns, digests):
        key = cast(int, row["item"])
        if any(gap.first <= key <= gap.last for gap in gaps):
            target.execute(put, tuple(row[name] for name in columns))
            taken += [key] * target.changes()
    return taken


def _memory_rows(
    path: Path | None, log: Path, columns: Sequence[str], digests: Mapping[int, str] = MappingProxyType({})
) -> Iterator[dict[str, Value]]:
    """Yield the columns of every memory on the pages whose content has its SHA-256, its own or that in `digests`."""
    for key, row in leaf_rows(path, log):
        if len(row) == len(columns):
            named = dict(zip(columns, (key, *row[1:]), strict=True))
            named["hash"] = digests.get(key, named["hash"])
            if found := checked(named):
                yield found


def _digests(connection: apsw.Connection) -> dict[int, str]:
    """Return the SHA-256 of active memories by key, as an index has them, on other pages than the table."""
    sql = "SELECT item, hash FROM memory INDEXED BY memory_claim WHERE state = 'active' AND path = ''"
    with suppress(apsw.Error, UnicodeDecodeError):
        return {cast(int, key): str(digest) for key, digest in connection.execute(sql)}
    return {}


def memories_in_logs(home: Home) -> list[StoredMemory]:
    """Return the memories in kept logs whose content has its SHA-256, also from frames that SQLite dropped."""
    with closing(_opened(home.database)) as connection:
        columns = _columns(connection, "memory")
    logs = sorted(home.backups.glob("lost-*.db-wal"))
    rows = (row for log in logs for row in _memory_rows(None, log, columns))
    return list({held.memory.content_hash: held for held in map(decoded, rows)}.values())


def _columns(connection: apsw.Connection, table: str) -> list[str]:
    return [str(name) for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]


def _indexed_memories(connection: apsw.Connection) -> set[int] | None:
    """Return the keys of all memories as an index has them, on other pages than the table; None if unreadable."""
    with suppress(apsw.Error):
        return {key for (key,) in connection.execute("SELECT item FROM memory INDEXED BY memory_created")}
    return None


def _memories(connection: apsw.Connection) -> set[int]:
    return {key for (key,) in connection.execute("SELECT item FROM memory")}


def _tidy(target: apsw.Connection) -> None:
    """Give each memory its item, and remove or detach rows that refer to lost ones."""
    target.execute("INSERT OR IGNORE INTO item (key, kind, at) SELECT item, 'memory', created FROM memory")
    changed = -1
    while changed != target.total_changes():
        changed = target.total_changes()
        for table in _tables(target):
            for parent, columns, keys in target.execute(_REFERENCES, (table,)).fetchall():
                present = " AND ".join(f"{column} NOT NULL" for column in str(columns).split(", "))
                lost = f"{present} AND ({columns}) NOT IN (SELECT {keys} FROM {parent})"
                try:
                    target.execute(f"UPDATE {table} SET ({columns}) = (SELECT {_nulls(columns)}) WHERE {lost}")
                except apsw.ConstraintError:
                    target.execute(f"DELETE FROM {table} WHERE {lost}")


def _nulls(columns: object) -> str:
    return ", ".join("NULL" for _ in str(columns).split(", "))


def _opened(path: Path) -> apsw.Connection:
    """Open a file to read, even a truncated one: `writable_schema` makes SQLite read the rest of it."""
    connection = connect(str(path), apsw.SQLITE_OPEN_READONLY)
    with suppress(apsw.Error):
        connection.execute("PRAGMA writable_schema=ON").fetchall()
    return connection


def _version(connection: apsw.Connection) -> int:
    with suppress(apsw.Error):
        return int(connection.execute("PRAGMA user_version").get)
    return 0


def _tables(target: apsw.Connection) -> list[str]:
    rows = target.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY rowid")
    return [str(name) for (name,) in rows if name not in _LEFT_OUT]


def _has_rowid(target: apsw.Connection, table: str) -> bool:
    return target.execute("SELECT wr FROM pragma_table_list(?)", (table,)).fetchall() != [(1,)]


def _count(target: apsw.Connection, table: str) -> int:
    return int(target.execute(f"SELECT count(*) FROM {table}").get)


def _files(database: Path) -> list[Path]:
    return [database.with_name(f"{database.name}{suffix}") for suffix in ("", "-wal", "-shm")]
