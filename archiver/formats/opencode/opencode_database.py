"""Reader of OpenCode's databases, which contain sessions and messages in the tables of one or two generations.

Versions 1 store messages in the tables `message` and `part`. Versions 2 store them in the table `session_message`, and
sessions in `session_v2`. A database that was migrated has the tables of both generations.
"""

# ruff: noqa: S608 - statements contain only fixed names, and values are bound
import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path

from ....core.errors import PartlyRead, SourceUnreadable
from ..containers import exact_json, file_name, fingerprint, message_line
from ..foreign_database import ForeignDatabase, Value, as_bytes, as_text
from ..json_values import instant
from ..transcript_format import ContainedSession

_HEADER = ("parent_id", "fork_session_id", "project_id", "directory", "title", "version", "time_created")
"""Columns that describe a session. Other columns change with every message."""
_SESSION_TABLES = ("session", "session_v2")
"""Tables of sessions. A session in several tables is described by the last one."""
_MESSAGE_TABLES: dict[str, frozenset[str]] = {
    "message": frozenset({"id", "session_id", "data"}),
    "part": frozenset({"message_id", "data"}),
    "session_message": frozenset({"id", "session_id", "type", "data"}),
}
"""Tables of messages, with the columns that are needed."""
_GENERATION = re.compile(r"(?:session|message|part|session_message)_?v?\d+")
_HINT = "A newer version of Palaver may read it. Please report it."

_Columns = Mapping[str, set[str]]


def has_sessions(path: Path) -> bool:
    """Return whether a database has a table of sessions. A temporarily unreadable database counts too."""
    try:
        return any("id" in columns for name, columns in _tables(ForeignDatabase(path)).items() if "session" in name)
    except SourceUnreadable:
        return path.is_file()


def sessions(path: Path) -> Iterator[ContainedSession]:
    """Yield every session, oldest first.

    Raises:
        SourceUnreadable: The database cannot be read.
        PartlyRead: After the last session, if the database has tables or lacks columns so that not all was read.
    """
    database = ForeignDatabase(path)
    tables = _tables(database)
    lacking = dict(_lacking(tables))
    readable = {name: columns for name, columns in tables.items() if name in _MESSAGE_TABLES and name not in lacking}
    if not {"message", "part"} <= readable.keys():  # A message of version 1 has no text without its parts.
        readable = {name: columns for name, columns in readable.items() if name == "session_message"}
    states = [_states(database, name, readable) for name in _MESSAGE_TABLES if name in readable]
    headers: dict[str, tuple[int, int, dict[str, object]]] = {}
    for name in _SESSION_TABLES:
        if "id" in tables.get(name, ()):
            headers.update(_headers(database, name, tables[name]))
    for session_id, (_, at, header) in sorted(headers.items(), key=lambda item: (item[1][0], item[0])):
        name = file_name(session_id)
        state = fingerprint(header, *(table.get(session_id) for table in states))
        lines = partial(_lines, database, session_id, header, readable)
        yield ContainedSession(path / name, f"{path.name}/{name}", state, at, lines)
    problems = [*lacking.values(), *_unsupported(database, tables, readable)]
    if problems:
        raise PartlyRead(path, "; ".join(problems), hint=_HINT)


def _tables(database: ForeignDatabase) -> dict[str, set[str]]:
    """Return the column names of every table."""
    found: dict[str, set[str]] = {}
    for table, column in database.rows(
        "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'"
    ):
        found.setdefault(as_text(table), set()).add(as_text(column))
    return found


def _lacking(tables: _Columns) -> Iterator[tuple[str, str]]:
    """Yield the tables that cannot be read, each with a description of what is missing."""
    if not any("id" in tables.get(name, ()) for name in _SESSION_TABLES):
        yield "session", "no table of sessions with a column id"
    stored = ("message", "part") if not tables.keys().isdisjoint({"message", "part"}) else ("session_message",)
    for name, needed in _MESSAGE_TABLES.items():
        if name not in tables and name in stored:
            yield name, f"no table {name}"
        elif name in tables and (missing := sorted(needed - tables[name])):
            yield name, f"table {name} has no column {' and '.join(missing)}"


def _unsupported(database: ForeignDatabase, tables: _Columns, readable: _Columns) -> Iterator[str]:
    """Yield a description of each table with sessions that only a newer version can read."""
    known = {
        "id": [name for name in _SESSION_TABLES if "id" in tables.get(name, ())],
        "session_id": [name for name, columns in readable.items() if "session_id" in columns],
    }
    for name, columns in tables.items():
        is_message_table = columns >= {"session_id", "data"} or _GENERATION.fullmatch(name)
        if not is_message_table or name in {*_SESSION_TABLES, *_MESSAGE_TABLES}:
            continue
        column = next((each for each in ("session_id", "id") if each in columns), "NULL")
        read = " UNION ".join(f"SELECT {column} FROM {each}" for each in known.get(column, ())) or "SELECT NULL"
        table = name.replace('"', '""')
        if database.rows(f'SELECT {column} FROM "{table}" EXCEPT {read} LIMIT 1'):
            yield f"table {name} of a newer version of OpenCode is not read"


def _headers(
    database: ForeignDatabase, table: str, columns: Collection[str]
) -> Iterator[tuple[str, tuple[int, int, dict[str, object]]]]:
    """Yield the ID of each session, with the times of its creation and last change, and its description."""
    names = ["id", *(name for name in _HEADER if name in columns)]
    times = [name if name in columns else "NULL" for name in ("time_created", "time_updated")]
    query = f"SELECT {', '.join(times)}, {', '.join(map(as_bytes, names))} FROM {table}"
    for created, changed, *values in database.rows(query):
        decoded = [as_text(value) if isinstance(value, bytes) else value for value in values]
        described: dict[str, object] = dict(zip(names, decoded, strict=True))
        yield as_text(values[0]), (instant(created) or 0, instant(changed) or 0, described)


def _states(database: ForeignDatabase, table: str, tables: _Columns) -> dict[str, tuple[Value, ...]]:
    """Return the number, the total size and the change times of each session's rows."""
    columns = tables[table]
    changed = "total(t.time_updated), max(t.time_updated)" if "time_updated" in columns else "0, 0"
    values = f"count(*), total(octet_length(t.data)), {changed}"
    session, source = "t.session_id", f"{table} t"
    if "session_id" not in columns:
        session, source = "m.session_id", f"{table} t JOIN message m ON m.id = t.message_id"
    rows = database.rows(f"SELECT {as_bytes(session)}, {values} FROM {source} GROUP BY {session}")
    return {as_text(session): tuple(values) for session, *values in rows}


def _lines(database: ForeignDatabase, session: str, header: dict[str, object], tables: _Columns) -> Iterator[bytes]:
    """Yield the lines of one session from one consistent state of the database.

    A migrated session may have its messages in the tables of both generations. Messages of the newer generation are
    used from the last message of the older generation on.
    """
    queries = [_QUERIES[name](columns) for name, columns in tables.items()]
    rows = database.rows(" UNION ALL ".join(queries), (session,)) if queries else []
    parts: dict[str, list[tuple[str, object]]] = {}
    messages: list[tuple[int, str, object]] = []
    entries: list[tuple[object, int, str, str, object]] = []
    for table, owner, item, data, at, position in rows:
        created, name, value = instant(at) or 0, as_text(item), exact_json(data)
        if table == "message":
            messages.append((created, name, value))
        elif table == "part":
            parts.setdefault(as_text(owner), []).append((name, value))
        else:
            order = position if isinstance(position, int) else created
            entries.append((order, created, name, as_text(owner), value))
    yield message_line(session, session=header)
    for created, name, value in sorted(messages, key=lambda message: message[:2]):
        listed = [{"id": part, "data": data} for part, data in sorted(parts.get(name, []), key=lambda part: part[0])]
        yield message_line(name, created=created, message=value, parts=listed)
    last, names = max((created for created, *_ in messages), default=-1), {name for _, name, _ in messages}
    for _, created, name, kind, value in sorted(entries, key=lambda entry: entry[:3]):
        if created > last and name not in names:
            yield message_line(name, created=created, type=kind, entry=value)


def _messages(columns: Collection[str]) -> str:
    at = "time_created" if "time_created" in columns else "NULL"
    return (
        f"SELECT 'message', NULL, {as_bytes('id')}, {as_bytes('data')}, {at}, NULL FROM message WHERE session_id = ?1"
    )


def _parts(columns: Collection[str]) -> str:
    name = as_bytes("id") if "id" in columns else "printf('%020d', rowid)"
    own = "message_id IN (SELECT id FROM message WHERE session_id = ?1)"
    condition = "session_id = ?1" if "session_id" in columns else own
    return (
        f"SELECT 'part', {as_bytes('message_id')}, {name}, {as_bytes('data')}, NULL, NULL FROM part WHERE {condition}"
    )


def _entries(columns: Collection[str]) -> str:
    at, order = (name if name in columns else "NULL" for name in ("time_created", "seq"))
    values = f"{as_bytes('type')}, {as_bytes('id')}, {as_bytes('data')}, {at}, {order}"
    return f"SELECT 'session_message', {values} FROM session_message WHERE session_id = ?1"


_QUERIES = {"message": _messages, "part": _parts, "session_message": _entries}
