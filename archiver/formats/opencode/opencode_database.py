"""Reader of OpenCode's database, which contains sessions, messages and message parts."""

# ruff: noqa: S608 - statements contain only fixed names, and values are bound
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path

from ....core.errors import SourceUnreadable
from ..containers import exact_json, file_name, fingerprint, message_line
from ..foreign_database import ForeignDatabase, Value, as_bytes, as_text
from ..json_values import instant
from ..transcript_format import ContainedSession

_HEADER = ("parent_id", "project_id", "directory", "title", "version", "time_created")
"""Columns that describe a session. Other columns change with every message."""
_TABLES = {
    "session": {"id"},
    "message": {"id", "session_id", "data"},
    "part": {"id", "message_id", "session_id", "data"},
}


def has_sessions(path: Path) -> bool:
    """Return whether a database has a table of sessions. A temporarily unreadable database counts too."""
    try:
        return ForeignDatabase(path).columns("session") >= _TABLES["session"]
    except SourceUnreadable:
        return path.is_file()


def sessions(path: Path) -> Iterator[ContainedSession]:
    """Yield every session, oldest first. Raises `SourceUnreadable`."""
    database = ForeignDatabase(path)
    columns = {table: database.columns(table) for table in _TABLES}
    lacking = [table for table, needed in _TABLES.items() if not columns[table] >= needed]
    if lacking:
        hint = "A newer version of OpenCode may have written it. Please report this."
        raise SourceUnreadable(path, f"unexpected columns in table {lacking[0]}", hint=hint)
    states = [_states(database, table, columns[table]) for table in ("message", "part")]
    for session_id, at, header in _headers(database, columns["session"]):
        name = file_name(session_id)
        state = fingerprint(header, *(table.get(session_id) for table in states))
        lines = partial(_lines, database, session_id, header, "time_created" in columns["message"])
        yield ContainedSession(path / name, f"{path.name}/{name}", state, at, lines)


def _headers(database: ForeignDatabase, columns: Collection[str]) -> Iterator[tuple[str, int, dict[str, object]]]:
    """Yield the ID, the time of the last change and the description of each session."""
    names = ["id", *(name for name in _HEADER if name in columns)]
    updated = "time_updated" if "time_updated" in columns else "NULL"
    first = "time_created" if "time_created" in columns else "id"
    query = f"SELECT {updated}, {', '.join(map(as_bytes, names))} FROM session ORDER BY {first}, id"
    for at, *values in database.rows(query):
        decoded = [as_text(value) if isinstance(value, bytes) else value for value in values]
        yield as_text(values[0]), instant(at) or 0, dict(zip(names, decoded, strict=True))


def _states(database: ForeignDatabase, table: str, columns: Collection[str]) -> dict[str, tuple[Value, ...]]:
    """Return the number, the total size and the change times of each session's rows."""
    changed = "total(time_updated), max(time_updated)" if "time_updated" in columns else "0, 0"
    values = f"count(*), total(octet_length(data)), {changed}"
    rows = database.rows(f"SELECT {as_bytes('session_id')}, {values} FROM {table} GROUP BY session_id")
    return {as_text(session): tuple(values) for session, *values in rows}


def _lines(database: ForeignDatabase, session: str, header: dict[str, object], timed: bool) -> Iterator[bytes]:
    """Yield the lines of one session from one consistent state of the database."""
    at = "time_created" if timed else "NULL"
    values = f"{as_bytes('id')}, {as_bytes('data')}"
    query = (
        f"SELECT NULL, {values}, {at} FROM message WHERE session_id = ?1"
        f" UNION ALL SELECT {as_bytes('message_id')}, {values}, NULL FROM part WHERE session_id = ?1"
    )
    rows = database.rows(query, (session,))
    parts: dict[str, list[tuple[str, object]]] = {}
    for message, part, data, _ in rows:
        if message is not None:
            parts.setdefault(as_text(message), []).append((as_text(part), exact_json(data)))
    messages = [
        (instant(at) or 0, as_text(item), exact_json(data)) for message, item, data, at in rows if message is None
    ]
    yield message_line(session, session=header)
    for created, message_id, value in sorted(messages, key=lambda message: message[:2]):
        own_parts = sorted(parts.get(message_id, []), key=lambda part: part[0])
        listed = [{"id": part, "data": data} for part, data in own_parts]
        yield message_line(message_id, created=created, message=value, parts=listed)
