"""Hints that suggest sessions for an unknown or ambiguous session ID.

Error messages do not mark text from transcripts as quoted, so an agent could mistake it for an instruction. The hints
therefore contain only IDs and project names of a single word.
"""

from pathlib import PurePath
from typing import Final

from ...core.amount import many
from ...core.clock import show_day
from ...core.errors import InvalidInput
from ...core.text import is_one_word, similar_names
from .session_table import SessionTable

_SHOWN: Final = 3
"""Maximum number of sessions to show."""
_SIMILARITY: Final = 75
"""Minimum similarity (0 to 100) between the unknown ID and the beginning of a session ID."""
_SHORTEST: Final = 3
"""Minimum length of an unknown ID for which similar IDs are searched."""
_ID: Final = 100
"""Maximum length of an ID to show. Some IDs of sub-agents are long because they contain the ID of their session."""


def similar_sessions(sessions: SessionTable, wanted: str) -> str:
    """Return a question that suggests sessions with similar IDs, such as `Did you mean 1a2b (shop)? `.

    Return an empty text if no session ID begins similarly to `wanted`.
    """
    name = PurePath(wanted).stem
    if len(name) < _SHORTEST:
        return ""
    named = sessions.named()
    beginnings = dict.fromkeys(native_id[: len(name)] for native_id, _, _ in named)
    similar = similar_names(name, beginnings, least=_SIMILARITY, limit=_SHOWN)
    shown = _listed([each for start in similar for each in named if each[0].startswith(start)])
    return f"Did you mean {shown}? " if shown else ""


def ambiguous_session(sessions: SessionTable, start: str) -> InvalidInput:
    """Return the error for a prefix that matches several session IDs. The hint lists the newest of these sessions."""
    found = [each for each in sessions.named() if each[0].startswith(start) or f"/{start}" in each[0]]
    shown = _listed(found)
    hint = f"Give more characters of the ID: {shown}." if shown else "Give more characters of the ID."
    return InvalidInput(f"{len(found):,} session IDs begin with {start}", hint=hint)


def _listed(found: list[tuple[str, str, int | None]]) -> str:
    """Format a list of sessions: the first `_SHOWN` with their projects and days, and the number of other sessions."""
    shown = [_described(*each) for each in found if all(is_one_word(part, longest=_ID) for part in each[0].split("/"))]
    shown = shown[:_SHOWN]
    if shown and len(found) > len(shown):
        return f"{', '.join(shown)} or {many(len(found) - len(shown), 'other')}"
    return " or ".join(shown)


def _described(native_id: str, project: str, at: int | None) -> str:
    facts = [project, show_day(at)] if is_one_word(project) else [show_day(at)]
    return f"{native_id} ({', '.join(facts)})"
