"""Databases of Cursor's editor, which store the editor's entire state as key-value pairs.

The value of `composerData:<id>` is a conversation with the order of its messages. The value of `bubbleId:<id>:<bubble>`
is one message. In older versions, the value of `composerData:<id>` also contains the messages. The oldest versions
store each conversation as a tab in the database of a project.
"""

# ruff: noqa: S608 - statements contain only fixed names, and values are bound
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ....core.errors import PartlyRead
from ...files.lines import Record
from ..containers import exact_json, file_name, fingerprint, message_line
from ..foreign_database import ForeignDatabase, as_bytes, as_text
from ..json_values import first_string, instant, listing, mapping, mappings, string
from ..transcript_format import ContainedSession
from .cursor_workspaces import conversation_folders, decoded, entry, is_readable, workspace_folder

TABLES = ("ItemTable", "cursorDiskKV")
"""Tables of which a database of the editor has at least one."""
_COMPOSER, _BUBBLE = "composerData:", "bubbleId:"
_TABS = "workbench.panel.aichat.view.aichat.chatdata"
_HEADER = ("composerId", "name", "createdAt", "unifiedMode", "forceMode", "subagentInfo", "tabId", "chatTitle")
"""Fields that describe a conversation. Other fields are editor state and change often."""


def sessions(path: Path) -> Iterator[ContainedSession]:
    """Yield every conversation, ordered by ID.

    Raises:
        SourceUnreadable: The database cannot be read.
        PartlyRead: After the last conversation, if a table is missing or lacks columns.
    """
    database = ForeignDatabase(path)
    own = workspace_folder(path.parent)
    tables = {table: columns for table in TABLES if (columns := database.columns(table))}
    lacking = [f"table {table} has no column key or value" for table in tables if not is_readable(tables[table])]
    if is_readable(tables.get("cursorDiskKV", ())):
        folders = conversation_folders(path)
        for session_id, state in sorted(_states(database).items()):
            folder = folders.get(session_id, own)
            rows = partial(_composer_lines, database, session_id, folder)
            yield _session(path, session_id, fingerprint(state, folder), 0, rows)
    for tab in mappings(entry(database, _TABS).get("tabs")):
        session_id = string(tab.get("tabId"))
        bubbles = [(_id(each), each) for each in listing(tab.get("bubbles"))]
        lines = list(_lines(session_id, tab, own, bubbles))
        at = instant(tab.get("lastSendTime")) or 0
        yield _session(path, session_id, fingerprint(*lines), at, partial(iter, lines))
    if lacking or not tables:
        problem = "; ".join(lacking) or f"no table {' or '.join(TABLES)}"
        raise PartlyRead(path, problem, hint="A newer version of Palaver may read it. Please report it.")


def _session(path: Path, session_id: str, state: int, at: int, lines: "partial[Iterator[bytes]]") -> ContainedSession:
    name = file_name(session_id)
    return ContainedSession(path / name, f"{path.parent.name}/{name}", state, at, lines)


def _states(database: ForeignDatabase) -> dict[str, int]:
    """Return a fingerprint of each conversation, computed from the keys, lengths and row IDs of its values.

    A change always changes the fingerprint, because the editor stores a changed value in a new row.
    """
    rows: dict[str, list[str]] = {}
    for prefix in (_COMPOSER, _BUBBLE):
        query = "SELECT CAST(key AS BLOB), rowid, octet_length(value) FROM cursorDiskKV WHERE key >= ? AND key < ?"
        for key, *values in database.rows(query, _range(prefix)):
            session_id, _, bubble = as_text(key).removeprefix(prefix).partition(":")
            rows.setdefault(session_id, []).append(repr((prefix, bubble, *values)))
    return {session_id: fingerprint(*sorted(found)) for session_id, found in rows.items()}


def _range(prefix: str) -> tuple[str, str]:
    """Return the key range of a prefix: inclusive start and exclusive end."""
    return prefix, prefix[:-1] + chr(ord(prefix[-1]) + 1)


def _composer_lines(database: ForeignDatabase, session_id: str, folder: str) -> Iterator[bytes]:
    """Yield the lines of a conversation: the messages in the recorded order, then messages without a recorded position.

    All lines come from one consistent state of the database.
    """
    prefix = f"{_BUBBLE}{session_id}:"
    rows = database.rows(
        f"SELECT CAST(key AS BLOB), {as_bytes('value')} FROM cursorDiskKV"
        " WHERE key = ? OR (key >= ? AND key < ?) ORDER BY rowid",
        (_COMPOSER + session_id, *_range(prefix)),
    )
    values = {as_text(key): value for key, value in rows}
    composer = decoded(values.pop(_COMPOSER + session_id, None))
    bubbles = {_id(each): each for each in listing(composer.get("conversation"))}
    bubbles |= {key.removeprefix(prefix): exact_json(value) for key, value in values.items()}
    order = [_id(each) for each in listing(composer.get("fullConversationHeadersOnly"))]
    ordered = dict.fromkeys([*(each for each in order if each in bubbles), *bubbles])
    yield from _lines(session_id, composer, folder, [(each, bubbles[each]) for each in ordered])


def _lines(session_id: str, header: Record, folder: str, bubbles: list[tuple[str, object]]) -> Iterator[bytes]:
    fields = {name: header[name] for name in _HEADER if name in header}
    project = {"folder": folder} if folder else {}
    yield message_line(session_id, conversation={"composerId": session_id, **fields, **project})
    for bubble, value in bubbles:
        yield message_line(bubble, bubble=value)


def _id(bubble: object) -> str:
    return first_string(mapping(bubble), "bubbleId", "id")
