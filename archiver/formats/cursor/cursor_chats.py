"""Cursor's command line: a database for each chat, whose JSON blobs are the messages in the order they were made."""

# ruff: noqa: S608 - names of our own are pasted into statements, values are always bound
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ..container import exact, file_name, mark_of, row
from ..foreign_database import Foreign, Value, plain, text
from ..json_values import instant, mapping, string
from ..transcript_format import ContainedSession

_HEADER = ("agentId", "name", "createdAt", "mode")


def conversations(path: Path) -> Iterator[ContainedSession]:
    """The one chat of a database; raises `SourceUnreadable`."""
    database = Foreign(path)
    number = path.parent.name
    name = file_name(number)
    state = database.rows("SELECT count(*), max(rowid), total(octet_length(data)) FROM blobs")
    header = _header(database, number)
    at = instant(header.get("createdAt")) or 0
    rows = partial(_rows, database, number, header)
    yield ContainedSession(path / name, f"{path.parent.parent.name}/{name}", mark_of(state, header), at, rows)


def _header(database: Foreign, number: str) -> dict[str, object]:
    told: dict[str, object] = {}
    if database.columns("meta"):
        for (value,) in database.rows(f"SELECT {plain('value')} FROM meta"):
            told |= _meta(value)
    return {"agentId": number, **{name: told[name] for name in _HEADER if name in told and name != "agentId"}}


def _meta(value: Value) -> dict[str, object]:
    """What is told of the chat: JSON, written as hexadecimal digits."""
    try:
        return mapping(json.loads(bytes.fromhex(text(value))))
    except ValueError:
        return {}


def _rows(database: Foreign, number: str, header: dict[str, object]) -> Iterator[bytes]:
    """Its lines; the other blobs are trees of these, in a form of their own."""
    yield row(number, conversation=header)
    query = f"SELECT {plain('id')}, data FROM blobs WHERE substr(CAST(data AS BLOB), 1, 1) = x'7b' ORDER BY rowid"
    for blob, data in database.rows(query):
        message = exact(data)
        if not isinstance(message, str):
            yield row(string(text(blob)), message=message)
