"""Cursor's editor: its databases, which hold all that the editor knows under keys of their own.

A conversation is a `composerData:<id>` with the order of its messages, each of which is a `bubbleId:<id>:<bubble>`.
Older conversations have their messages within, and the oldest are tabs in the database of a project.
"""

# ruff: noqa: S608 - names of our own are pasted into statements, values are always bound
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ...files.lines import decode
from ..container import exact, file_name, mark_of, row
from ..foreign_database import Foreign, plain, text
from ..json_values import instant, listing, mapping, string
from ..transcript_format import ContainedSession

_COMPOSER, _BUBBLE = "composerData:", "bubbleId:"
_TABS = "workbench.panel.aichat.view.aichat.chatdata"
_HEADER = ("composerId", "name", "createdAt", "unifiedMode", "forceMode", "subagentInfo", "tabId", "chatTitle")
"""What is told of a conversation as a whole; the rest is the editor's state and changes all the time."""


def conversations(path: Path) -> Iterator[ContainedSession]:
    """Every conversation, by its id; raises `SourceUnreadable`."""
    database = Foreign(path)
    folder = _folder(path)
    place = path.parent.name
    if database.columns("cursorDiskKV"):
        marks = _marks(database)
        for number in sorted(marks):
            name = file_name(number)
            rows = partial(_composer, database, number, folder)
            yield ContainedSession(path / name, f"{place}/{name}", marks[number], 0, rows)
    for (data,) in database.rows(f"SELECT {plain('value')} FROM ItemTable WHERE key = ?", (_TABS,)):
        for tab in map(mapping, listing(_value(data).get("tabs"))):
            number = string(tab.get("tabId"))
            lines = list(_lines(number, tab, folder, [(_id(each), each) for each in listing(tab.get("bubbles"))]))
            at = instant(tab.get("lastSendTime")) or 0
            name = file_name(number)
            yield ContainedSession(path / name, f"{place}/{name}", mark_of(*lines), at, partial(iter, lines))


def _marks(database: Foreign) -> dict[str, int]:
    """For each conversation what is another whenever a message of it is: keys, lengths, and where they stand, for the
    editor puts what it changes in a new place.
    """
    told: dict[str, list[object]] = {}
    for prefix in (_COMPOSER, _BUBBLE):
        query = "SELECT CAST(key AS BLOB), rowid, octet_length(value) FROM cursorDiskKV WHERE key >= ? AND key < ?"
        for key, *rest in database.rows(query, _range(prefix)):
            number, _, bubble = text(key).removeprefix(prefix).partition(":")
            told.setdefault(number, []).append((prefix, bubble, *rest))
    return {number: mark_of(*sorted(map(repr, values))) for number, values in told.items()}


def _range(prefix: str) -> tuple[str, str]:
    """The first key that begins with a prefix, and the first after all that do."""
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _composer(database: Foreign, number: str, folder: str) -> Iterator[bytes]:
    """The lines of a conversation, of one state of the database: its messages in its order, then any others."""
    prefix = f"{_BUBBLE}{number}:"
    found = database.rows(
        f"SELECT CAST(key AS BLOB), {plain('value')} FROM cursorDiskKV"
        " WHERE key = ? OR (key >= ? AND key < ?) ORDER BY rowid",
        (_COMPOSER + number, *_range(prefix)),
    )
    values = {text(key): value for key, value in found}
    composer = _value(values.pop(_COMPOSER + number, None))
    bubbles = {key.removeprefix(prefix): exact(value) for key, value in values.items()}
    inline = {_id(each): each for each in listing(composer.get("conversation"))}
    order = [_id(each) for each in listing(composer.get("fullConversationHeadersOnly"))]
    told = {**inline, **bubbles}
    named = dict.fromkeys([*(each for each in order if each in told), *told])
    yield from _lines(number, composer, folder, [(each, told[each]) for each in named])


def _lines(number: str, header: dict[str, Any], folder: str, bubbles: list[tuple[str, object]]) -> Iterator[bytes]:
    told = {name: header[name] for name in _HEADER if name in header}
    yield row(number, conversation={"composerId": number, **told, **({"folder": folder} if folder else {})})
    for bubble, value in bubbles:
        yield row(bubble, bubble=value)


def _id(bubble: object) -> str:
    told = mapping(bubble)
    return string(told.get("bubbleId")) or string(told.get("id"))


def _value(data: object) -> dict[str, Any]:
    """An object that stands in the database as JSON; an empty one where it is none."""
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    found = decode(raw) if isinstance(raw, bytes) else []
    return found[0] if isinstance(found, list) and found else {}


def _folder(path: Path) -> str:
    """The folder that a project's database is about, as the file beside it says; empty for the editor's own."""
    try:
        told = mapping(json.loads((path.parent / "workspace.json").read_bytes()))
    except (OSError, ValueError):
        return ""
    return unquote(urlsplit(string(told.get("folder"))).path)
