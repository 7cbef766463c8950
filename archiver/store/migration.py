"""Conversion of a database with a schema before `schema.sql` to the current schema.

No other process can open the old database meanwhile. The steps of the old schema that it lacks are applied in a
transaction that is rolled back, so the file stays unchanged. All rows are copied to a new database beside it, and the
new database is read again and compared with them: the number and the SHA-256 of the rows of each table. Then it
replaces the old database, which is kept in the backups until the user deletes it.

A killed process leaves the old database in use. The next call starts again.
"""

import os
import re
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import cache
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec
from msgspec import Struct, field

from ...core.errors import StoreCorrupt, StoreError
from ...core.home import Home
from ...core.reports import size
from ...core.runtime import Reporter, silent, sync_path
from .backups import stamp
from .database import (
    CHECKSUM_BYTES,
    FIRST_VERSION,
    SCHEMA,
    Database,
    connect,
    database_files,
    has_rowid,
    open_exclusively,
    placeholders,
    schema_sql,
    tables,
    translated_errors,
)
from .observation_table import OPTED_OUT

_OLD_OPTED_OUT: Final = "llm:renounced"
_TABLES: Final = {
    "deleted_exchange": "forgotten_item",
    "deletion": "forgetting",
    "edited_file": "edited",
    "erased_file": "emptied",
    "key_fingerprint": "key_check",
    "queued_file": "waiting_file",
    "redacted_names": "checked_names",
    "scheduled_erasure": "erasure",
    "tombstone_file": "register",
    "trusted_folder": "allowed_folder",
    "verification": "inspection",
}
"""Old names of tables that were renamed."""
_OBSERVED: Final = f"iif(observed = '{_OLD_OPTED_OUT}', '{OPTED_OUT}', observed)"
_COLUMNS: Final = {
    "deleted_exchange": {"deletion": "forgetting", "observed": _OBSERVED, "rows": "renamed(rows)"},
    "deletion": {"summary": "told"},
    "erased_file": {"path_hash": "mark"},
    "exchange": {"observed": _OBSERVED},
    "key_fingerprint": {"fingerprint": "sign"},
    "observation": {"fingerprint": "mark", "tokens": "price"},
    "repetition": {"repeated_in": "elsewhere"},
    "scheduled_erasure": {"deletion": "forgetting"},
    "token": {"bits": "signs"},
    "tombstone": {"deletion": "forgetting", "hash": "mark"},
}
"""Old names of columns that were renamed, by table, or the expression of their values."""


class Migration(Struct, frozen=True):
    """Result of a conversion.

    Attributes:
        home: Folder of the data.
        converted: True if this call converted the database.
        rows: Number of copied rows, by table.
        old: Old databases that are kept.
        deleted: Number of old databases that this call deleted.
    """

    home: Path
    converted: bool = False
    rows: dict[str, int] = field(default_factory=dict[str, int])
    old: tuple[Path, ...] = ()
    deleted: int = 0


def migrate(home: Home, report: Reporter = silent) -> Migration:
    """Convert the database of a home, unless its schema is current.

    Raises:
        StoreMissing: There is no database.
        StoreReadOnly: The home is read-only.
        StoreBusy: Another process has the database open.
        StoreCorrupt: The database is damaged.
        StoreFromFuture: A newer version of Palaver wrote the database.
        StoreError: There is not enough free space, or a file cannot be written.
    """
    home.check()
    if not is_outdated(home.database):
        return Migration(home.root, old=old_databases(home))
    home.check_writable()
    fresh = home.database.with_name(f"{home.database.name}.new")
    with closing(open_exclusively(home.database)) as old:
        try:
            rows = convert(old, home.database, fresh, report)
            _replace(old, home, fresh)
        except OSError as error:
            raise StoreError(f"{error.filename}: {error.strerror}", hint="Nothing was changed. Try again.") from error
        finally:
            _remove(fresh)
    return Migration(home.root, True, rows, old_databases(home))


def delete_old_databases(home: Home) -> Migration:
    """Delete the old databases that conversions kept. Raises `StoreReadOnly`."""
    home.check_writable()
    old = old_databases(home)
    for path in old:
        path.unlink()
    return Migration(home.root, deleted=len(old))


def old_databases(home: Home) -> tuple[Path, ...]:
    """Return the old databases that conversions kept."""
    return tuple(sorted(home.backups.glob("old-*.db")))


def is_outdated(path: Path) -> bool:
    """Return whether a database must be converted. Raises `StoreCorrupt` if it is unreadable."""
    with closing(Database.open_read_only(path)) as database:
        return 0 < database.schema[0] < FIRST_VERSION


@cache
def old_steps() -> tuple[str, ...]:
    """Return the statements of each old version of the schema, in order."""
    text = (SCHEMA / "versions_1_to_51.sql").read_text("utf-8")
    return tuple(re.split(r"^-- Version \d+\n", text, flags=re.MULTILINE)[1:])


def old_schema_sql(version: int) -> str:
    """Return the statements that create an empty database with an old version of the schema."""
    return "".join(old_steps()[:version]) + f"PRAGMA user_version={version};"


def convert(old: apsw.Connection, path: Path, fresh: Path, report: Reporter = silent) -> dict[str, int]:
    """Write the content of an old database to a new file, and return the number of rows of each table.

    Args:
        old: Connection from `open_exclusively`. The file stays unchanged.
        path: Path of the old database.
        fresh: Path of the new file. An unfinished file of a killed process is replaced.
        report: Function that gets the progress.

    Raises:
        StoreError: There is not enough free space.
        StoreCorrupt: The old database is damaged, or the new database differs from it.
    """
    _remove(fresh)
    fresh.touch(mode=0o600)
    with translated_errors(path), _full_disk(path):
        old.create_scalar_function("renamed", _renamed, 1)
        old.execute("PRAGMA cache_spill=OFF").fetchall()  # No change is written to the file before the rollback.
        old.execute("BEGIN EXCLUSIVE")
        try:
            for step in old_steps()[int(old.execute("PRAGMA user_version").get) :]:
                old.execute(step)
            with closing(connect(str(fresh), apsw.SQLITE_OPEN_READWRITE)) as new:
                _copy(old, new, report)
            with closing(connect(str(fresh), apsw.SQLITE_OPEN_READONLY)) as new:
                return _compare(old, new, report)
        finally:
            old.execute("ROLLBACK")


def _remove(fresh: Path) -> None:
    for path in database_files(fresh):
        path.unlink(missing_ok=True)


@contextmanager
def _full_disk(path: Path) -> Generator[None]:
    """Report a full disk with the space that a conversion needs."""
    try:
        yield
    except apsw.FullError as error:
        needed = size(path.stat().st_size)
        hint = f"Nothing was changed. Free about {needed}, then run `palaver migrate` again."
        raise StoreError(f"{path}: the disk is full", hint=hint) from error


def _copy(old: apsw.Connection, new: apsw.Connection, report: Reporter) -> None:
    """Create the tables of `schema.sql`, and copy all rows in one transaction."""
    new.reserve_bytes("main", CHECKSUM_BYTES)
    new.execute(schema_sql(0, FIRST_VERSION))
    new.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
    new.execute("BEGIN")
    names = tables(new)
    for number, table in enumerate(names):
        report("Copying", number, len(names))
        columns, old_rows, _ = _columns_and_queries(new, table)
        insert = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({placeholders(columns)})"
        new.executemany(insert, old.execute(old_rows))
    new.execute("DELETE FROM sqlite_sequence")
    for table in names:
        last = "SELECT ?, seq FROM sqlite_sequence WHERE name = ?"
        rows = old.execute(last, (table, _TABLES.get(table, table))).fetchall()
        new.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", rows)
    new.execute("COMMIT")


def _compare(old: apsw.Connection, new: apsw.Connection, report: Reporter) -> dict[str, int]:
    """Compare the rows of both databases, and return their number for each table. Raises `StoreCorrupt`."""
    counts, names = dict[str, int](), tables(new)
    for number, table in enumerate(names):
        report("Comparing", number, len(names))
        _, *queries = _columns_and_queries(new, table)
        before, after = (_digest(*source) for source in zip((old, new), queries, strict=True))
        if before != after:
            raise StoreCorrupt(f"{table} of the new database differs from the old one", hint="Check the disk.")
        counts[table] = after[0]
    report("Comparing", len(names), len(names))
    return counts


def _columns_and_queries(new: apsw.Connection, table: str) -> tuple[list[str], str, str]:
    """Return the columns of a table, and the queries for its rows in the old and in the new database.

    Both return the rows in the order in which they are stored. The key of a table without row IDs is in its first
    columns.
    """
    columns = new.execute("SELECT name, pk FROM pragma_table_info(?)", (table,)).fetchall()
    names, keys = [str(name) for name, _ in columns], sum(bool(pk) for _, pk in columns)
    order = "rowid" if has_rowid(new, table) else ", ".join(str(number + 1) for number in range(keys))
    old_names = [_COLUMNS.get(table, {}).get(name, name) for name in names]
    old_rows = f"SELECT {', '.join(old_names)} FROM {_TABLES.get(table, table)} ORDER BY {order}"
    return names, old_rows, f"SELECT {', '.join(names)} FROM {table} ORDER BY {order}"


def _digest(connection: apsw.Connection, query: str) -> tuple[int, bytes]:
    """Return the number of rows of a query, and their SHA-256."""
    rows, hashed = 0, sha256()
    for row in connection.execute(query):
        rows += 1
        hashed.update(msgspec.msgpack.encode(row))
    return rows, hashed.digest()


def _renamed(*values: object) -> bytes:
    """Return the packed rows of a deleted exchange with the current names of tables and columns."""
    [packed] = values
    assert isinstance(packed, bytes)
    current = {old: new for new, old in _TABLES.items()}
    bundle = dict[str, list[dict[str, Any]]]()
    try:
        decoded = msgspec.msgpack.decode(packed, type=dict[str, list[dict[str, Any]]])
    except msgspec.DecodeError:
        return packed  # Damaged rows are kept as they are.
    for old, rows in decoded.items():
        table = current.get(old, old)
        columns = {column: name for name, column in _COLUMNS.get(table, {}).items()}
        bundle[table] = [{columns.get(name, name): value for name, value in row.items()} for row in rows]
        for row in bundle[table]:
            if row.get("observed") == _OLD_OPTED_OUT:
                row["observed"] = OPTED_OUT
    return msgspec.msgpack.encode(bundle)


def _replace(old: apsw.Connection, home: Home, fresh: Path) -> None:
    """Put the new database in the place of the old one, which is kept in the backups.

    The old database gets a rollback journal first, so that it consists of one file, and a process that opened it before
    cannot write to it any more: SQLite refuses to create the journal of a database that was moved.
    """
    with translated_errors(home.database):
        old.execute("PRAGMA journal_mode=DELETE").fetchall()
    for leftover in database_files(home.database)[1:]:
        leftover.unlink(missing_ok=True)  # The journal of the old database must not stay beside the new one.
    home.backups.mkdir(mode=0o700, exist_ok=True)
    for leftover in old_databases(home):
        if leftover.samefile(home.database):  # A killed process made this link.
            leftover.unlink()
    paths = (home.backups / f"old-{stamp()}{f'-{number}' if number > 1 else ''}.db" for number in count(1))
    kept = next(path for path in paths if not path.exists())  # Two conversions can be in one second.
    os.link(home.database, kept)
    sync_path(home.backups)
    fresh.replace(home.database)
    sync_path(home.root)
