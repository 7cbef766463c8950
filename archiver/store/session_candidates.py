"""Hints with the sessions that a user could mean by an ID that is unknown or ambiguous."""

from pathlib import PurePath
from typing import Final

from ...core.amount import many
from ...core.clock import show_day
from ...core.errors import InvalidInput
from ...core.text import similar_names
from .session_table import SessionTable

_SHOWN: Final = 3
"""Maximum number of sessions to show."""
_SIMILARITY: Final = 75
"""Minimum similarity of an ID, or of its beginning, 0 to 100."""
_SHORTEST: Final = 3
"""Minimum number of characters of an ID to compare."""


def similar_sessions(sessions: SessionTable, wanted: str) -> str:
    """Return a sentence with the sessions whose IDs begin similarly, the newest first, or an empty text."""
    name = PurePath(wanted).stem
    if len(name) < _SHORTEST:
        return ""
    named = sessions.named()
    beginnings = dict.fromkeys(native_id[: len(name)] for native_id, _, _ in named)
    similar = similar_names(name, beginnings, least=_SIMILARITY, limit=_SHOWN)
    found = [each for start in similar for each in named if each[0].startswith(start)]
    return f"Did you mean {_listed(found)}? " if found else ""


def ambiguous_session(sessions: SessionTable, start: str) -> InvalidInput:
    """Return the error for the beginning of several session IDs. The hint lists the newest of them."""
    found = [each for each in sessions.named() if each[0].startswith(start)]
    hint = f"Give more characters of the ID: {_listed(found)}."
    return InvalidInput(f"{len(found):,} session IDs begin with {start}", hint=hint)


def _listed(found: list[tuple[str, str, int | None]]) -> str:
    shown = [f"{name} ({', '.join(filter(None, (project, show_day(at))))})" for name, project, at in found[:_SHOWN]]
    if len(found) > _SHOWN:
        return f"{', '.join(shown)} or {many(len(found) - _SHOWN, 'other')}"
    return " or ".join(shown)
