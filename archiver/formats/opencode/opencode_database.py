"""OpenCode's database: sessions, their messages, and the parts that these are made of."""

# ruff: noqa: S608 - names of our own are pasted into statements, values are always bound
from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path

from ....core.errors import SourceUnreadable
from ..container import exact, file_name, mark_of, row
from ..foreign_database import Foreign, Value, plain, text
from ..json_values import instant
from ..transcript_format import ContainedSession

_HEADER = ("parent_id", "project_id", "directory", "title", "version", "time_created")
"""What is told of a session as a whole; its other columns change with every message."""
_TABLES = {
    "session": {"id"},
    "message": {"id", "session_id", "data"},
    "part": {"id", "message_id", "session_id", "data"},
}


def is_one(path: Path) -> bool:
    """Whether a database holds sessions. One that cannot be read now may."""
    try:
        return Foreign(path).columns("session") >= _TABLES["session"]
    except SourceUnreadable:
        return path.is_file()


def conversations(path: Path) -> Iterator[ContainedSession]:
    """Every session, oldest first; raises `SourceUnreadable`."""
    database = Foreign(path)
    columns = {table: database.columns(table) for table in _TABLES}
    lacking = [table for table, needed in _TABLES.items() if not columns[table] >= needed]
    if lacking:
        hint = "It may be of a version that Palaver does not know yet; please report it."
        raise SourceUnreadable(path, f"the table {lacking[0]} is not as OpenCode makes it", hint=hint)
    marks = [_marks(database, table, columns[table]) for table in ("message", "part")]
    for number, at, header in _sessions(database, columns["session"]):
        name = file_name(number)
        mark = mark_of(header, *(told.get(number) for told in marks))
        rows = partial(_rows, database, number, header, "time_created" in columns["message"])
        yield ContainedSession(path / name, f"{path.name}/{name}", mark, at, rows)


def _sessions(database: Foreign, columns: Collection[str]) -> Iterator[tuple[str, int, dict[str, object]]]:
    """Each session's id, when it last changed, and what is told of it."""
    names = ["id", *(name for name in _HEADER if name in columns)]
    updated = "time_updated" if "time_updated" in columns else "NULL"
    first = "time_created" if "time_created" in columns else "id"
    query = f"SELECT {updated}, {', '.join(map(plain, names))} FROM session ORDER BY {first}, id"
    for at, *values in database.rows(query):
        told = [text(value) if isinstance(value, bytes) else value for value in values]
        yield text(values[0]), instant(at) or 0, dict(zip(names, told, strict=True))


def _marks(database: Foreign, table: str, columns: Collection[str]) -> dict[str, tuple[Value, ...]]:
    """What is another for a session whenever one of its rows is: how many, how long, and when they changed."""
    changed = "total(time_updated), max(time_updated)" if "time_updated" in columns else "0, 0"
    told = f"count(*), total(octet_length(data)), {changed}"
    rows = database.rows(f"SELECT {plain('session_id')}, {told} FROM {table} GROUP BY session_id")
    return {text(session): tuple(values) for session, *values in rows}


def _rows(database: Foreign, session: str, header: dict[str, object], timed: bool) -> Iterator[bytes]:
    """The lines of one session, of one state of the database."""
    at = "time_created" if timed else "NULL"
    told = f"{plain('id')}, {plain('data')}"
    query = (
        f"SELECT NULL, {told}, {at} FROM message WHERE session_id = ?1"
        f" UNION ALL SELECT {plain('message_id')}, {told}, NULL FROM part WHERE session_id = ?1"
    )
    found = database.rows(query, (session,))
    parts: dict[str, list[tuple[str, object]]] = {}
    for message, number, data, _ in found:
        if message is not None:
            parts.setdefault(text(message), []).append((text(number), exact(data)))
    messages = [(instant(at) or 0, text(number), exact(data)) for message, number, data, at in found if message is None]
    yield row(session, session=header)
    for created, number, value in sorted(messages, key=lambda message: message[:2]):
        made_of = [{"id": part, "data": told} for part, told in sorted(parts.get(number, []), key=lambda part: part[0])]
        yield row(number, created=created, message=value, parts=made_of)
