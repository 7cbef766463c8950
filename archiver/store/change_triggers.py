"""Triggers that log every write to a column that index entries are made of.

An index learns of changes from the log alone. Triggers cover every writer, cascades and future ones included.
"""

from typing import Final

CONTEXT: Final = 4
"""Preceding exchanges from which a short one borrows text for its index entry."""
_LATER: Final = """
    INSERT INTO change (entity, id) SELECT 'item', item FROM exchange
        WHERE source = {row}.source AND ordinal BETWEEN {row}.ordinal + 1 AND {row}.ordinal + {context};"""
"""An exchange lends its text to the entries of the short ones after it, so theirs change too."""

_LEARNED: Final = """
    INSERT INTO change (entity, id) SELECT 'item', item FROM observation WHERE exchange = NEW.item;"""
"""The entry of an observation names the place and the branch of its exchange."""


def _log(row: str, column: str) -> str:
    return f"INSERT INTO change (entity, id) VALUES ('item', {row}.{column});"


def _updated(table: str, columns: str, action: str) -> str:
    """Return a trigger that runs `action` when an update changes one of these columns."""
    names = columns.split(", ")
    old, new = (", ".join(f"{row}.{name}" for name in names) for row in ("OLD", "NEW"))
    return f"""CREATE TRIGGER {table}_updated AFTER UPDATE OF {columns} ON {table} WHEN ({old}) IS NOT ({new})
        BEGIN {action} END;"""


def _inserted(table: str, action: str) -> str:
    return f"CREATE TRIGGER {table}_inserted AFTER INSERT ON {table} BEGIN {action} END;"


def _deleted(table: str, action: str) -> str:
    return f"CREATE TRIGGER {table}_deleted AFTER DELETE ON {table} BEGIN {action} END;"


def _later(row: str) -> str:
    return _LATER.format(row=row, context=CONTEXT)


CHANGE_TRIGGERS: Final = "\n".join(
    (
        _inserted("item", _log("NEW", "key")),
        _updated("item", "session, at", _log("NEW", "key")),
        _deleted("item", _log("OLD", "key")),
        _inserted("exchange", _later("NEW")),
        _updated(
            "exchange",
            "source, ordinal, cwd, branch, turns",
            f"{_log('NEW', 'item')} {_LEARNED} {_later('OLD')} {_later('NEW')}",
        ),
        _deleted("exchange", _later("OLD")),
        _inserted("observation", _log("NEW", "exchange")),
        _updated(
            "observation",
            "exchange, type, title, subtitle, narrative, facts, concepts, files_read, files_modified, evidence, origin",
            _log("NEW", "item") + _log("OLD", "exchange") + _log("NEW", "exchange"),
        ),
        _deleted("observation", _log("OLD", "exchange")),
        _inserted("confirmation", _log("NEW", "exchange")),
        _deleted("confirmation", _log("OLD", "exchange")),
        _updated(
            "session",
            "agent, native_id, project, cwd, branch",
            "INSERT INTO change (entity, id) SELECT 'item', key FROM item WHERE session = NEW.id;",
        ),
        _updated(
            "memory",
            "content, type, title, namespace, project, tags, origin, session_id, state, created",
            _log("NEW", "item"),
        ),
        _updated("chunk", "document, text, kind, start_line, end_line, header_path", _log("NEW", "item")),
        _updated(
            "document",
            "path, namespace, at",
            "INSERT INTO change (entity, id) SELECT 'item', item FROM chunk WHERE document = NEW.id;",
        ),
    )
)
