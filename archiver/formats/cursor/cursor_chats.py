"""Chats of Cursor's command line.

Each chat is a database that stores the messages as JSON blobs in order.
"""

# ruff: noqa: S608 - statements contain only fixed names, and values are bound
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ..containers import exact_json, file_name, fingerprint, message_line
from ..foreign_database import ForeignDatabase, Value, as_bytes, as_text
from ..json_values import instant, mapping
from ..transcript_format import ContainedSession

TABLES = ("blobs",)
"""Tables of which a database of a chat has at least one."""
_HEADER = ("name", "createdAt", "mode")


def sessions(path: Path) -> Iterator[ContainedSession]:
    """Yield the chat of a database. Each database contains exactly one chat. Raises `SourceUnreadable`."""
    database = ForeignDatabase(path)
    session_id = path.parent.name
    name = file_name(session_id)
    state = database.rows("SELECT count(*), max(rowid), total(octet_length(data)) FROM blobs")
    header = _header(database, session_id)
    at = instant(header.get("createdAt")) or 0
    lines = partial(_lines, database, session_id, header)
    yield ContainedSession(path / name, f"{path.parent.parent.name}/{name}", fingerprint(state, header), at, lines)


def _header(database: ForeignDatabase, session_id: str) -> dict[str, object]:
    found: dict[str, object] = {}
    if database.columns("meta"):
        for (value,) in database.rows(f"SELECT {as_bytes('value')} FROM meta"):
            found |= _meta(value)
    return {"agentId": session_id} | {name: found[name] for name in _HEADER if name in found}


def _meta(value: Value) -> dict[str, object]:
    """Return the description of the chat, which the database stores as hex-encoded JSON."""
    try:
        return mapping(json.loads(bytes.fromhex(as_text(value))))
    except ValueError:
        return {}


def _lines(database: ForeignDatabase, session_id: str, header: dict[str, object]) -> Iterator[bytes]:
    """Yield the message lines. Skip binary blobs, which contain trees of messages."""
    yield message_line(session_id, conversation=header)
    query = f"SELECT {as_bytes('id')}, data FROM blobs WHERE substr(CAST(data AS BLOB), 1, 1) = x'7b' ORDER BY rowid"
    for blob, data in database.rows(query):
        message = exact_json(data)
        if not isinstance(message, str):
            yield message_line(as_text(blob), message=message)
