"""Functions that make a home look like one written by another version."""

# pyright: reportPrivateUsage=false

import hashlib
import json
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import apsw
import msgspec

from palaver.archiver.store import database, migration


def outdate(index: Path) -> None:
    """Mark the published generation as made by another version."""
    current = index / "CURRENT"
    name = current.read_text().split()[0]
    manifest = index / name / "manifest.json"
    text = json.dumps({**json.loads(manifest.read_bytes()), "format": 1}).encode()
    manifest.write_bytes(text)
    current.write_text(f"{name} {hashlib.sha256(text).hexdigest()}")


RENAMED: dict[str, tuple[str, dict[str, str]]] = {
    "edited_file": ("edited", {}),
    "observation": ("observation", {"fingerprint": "mark", "tokens": "price"}),
    "token": ("token", {"bits": "signs"}),
}
"""Names that the last old schema uses in the packed rows of deleted exchanges: the table and its columns."""


def old_database(path: Path, version: int, *statements: str) -> Path:
    """Create a database with an old version of the schema, and run statements after the first version."""
    steps = migration.old_steps()
    with closing(apsw.Connection(str(path))) as connection:
        for sql in (steps[0], *statements, *steps[1:version], f"PRAGMA user_version = {version}"):
            connection.execute(sql)
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
    return path


def rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of a database, by table."""
    with closing(apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}


def fill(path: Path) -> None:
    """Insert two rows into every table of a database. Every value occurs only once."""
    numbers = count(1_000)
    fixed = {"change.entity": "item", "forgetting.state": "kept", "call.state": "settled", "vector.part": 7}
    with closing(apsw.Connection(str(path))) as connection:
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        for table in database.tables(connection):
            columns = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
            for _ in range(2):
                values = [_value(f"{table}.{name}", kind, next(numbers), fixed) for name, kind in columns]
                connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)


def downgrade(path: Path) -> None:
    """Replace a database by one with the same content and the last old schema."""
    old = path.with_name("old.db")
    tables, columns = migration._TABLES, migration._COLUMNS
    new_names = {old: new for new, old in tables.items()}
    with closing(apsw.Connection(str(old))) as connection:
        connection.execute(migration.old_schema_sql(len(migration.old_steps())))
        connection.config(apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, 0)
        connection.create_scalar_function("old_rows", _old_rows, 1)
        connection.execute("ATTACH ? AS current", (str(path),))
        for table in database.tables(connection):
            name = new_names.get(table, table)
            renamed = {old: new for new, old in columns.get(name, {}).items()}
            own = [str(column) for (column,) in connection.execute("SELECT name FROM pragma_table_info(?)", (table,))]
            exist = {
                column for (column,) in connection.execute("SELECT name FROM pragma_table_info(?, 'current')", (name,))
            }
            kept = [column for column in own if renamed.get(column, column) in exist]
            values = ["old_rows(rows)" if column == "rows" else renamed.get(column, column) for column in kept]
            if kept:
                connection.execute(
                    f"INSERT INTO main.{table} ({', '.join(kept)}) SELECT {', '.join(values)} FROM current.{name}"
                )
        connection.execute("UPDATE exchange SET observed = 'llm:renounced' WHERE observed = 'llm:opted-out'")
        connection.execute("DELETE FROM main.sqlite_sequence")
        for owner, last in connection.execute("SELECT name, seq FROM current.sqlite_sequence").fetchall():
            name = str(owner)
            connection.execute("INSERT INTO main.sqlite_sequence VALUES (?, ?)", (tables.get(name, name), last))
    for file in database.database_files(path):
        file.unlink(missing_ok=True)
    old.replace(path)


def _old_rows(*values: object) -> bytes:
    [packed] = values
    assert isinstance(packed, bytes)
    bundle: dict[str, list[dict[str, Any]]] = {}
    for table, found in msgspec.msgpack.decode(packed, type=dict[str, list[dict[str, Any]]]).items():
        name, columns = RENAMED.get(table, (table, {}))
        bundle[name] = [{columns.get(column, column): value for column, value in row.items()} for row in found]
    return msgspec.msgpack.encode(bundle)


def _value(name: str, kind: Any, number: int, fixed: dict[str, Any]) -> Any:
    if name in fixed:
        return fixed[name]
    if name == "forgotten_item.rows":
        return msgspec.msgpack.encode({"edited": [{"exchange": number, "path": f"path-{number}"}]})
    return {"INTEGER": number, "REAL": number + 0.5, "BLOB": b"bytes-%d" % number}.get(kind, f"text-{number}")
