"""Injections: text from the archive that a hook adds to the session of a coding agent."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

from .conversation import Milliseconds

SESSION_END: Final = "session-end"
"""Argument of `palaver hooks run` at the end of a session. It is on or off together with `session-start`."""


class HookEvent(StrEnum):
    """Events of a session at which a hook can inject text."""

    SESSION_START = "session-start"
    """Start of a session, and its continuation after a compaction."""
    PROMPT = "prompt"
    """Prompt that the user submitted."""
    TOOL = "tool"
    """Shell command or edit that the agent is about to make."""


class Injection(Struct, frozen=True):
    """Record of one injection, without the injected text.

    Attributes:
        session_id: ID that the agent gave to the session.
        project: Namespace of the project.
        tokens: Estimated tokens of the text.
        items: Public IDs of the observations, exchanges and memories in the text.
    """

    at: Milliseconds
    event: HookEvent
    session_id: str
    project: str
    tokens: int
    items: tuple[str, ...]


class InjectionTotal(Struct, frozen=True):
    """Totals for one event: number of injections, number of sessions with an injection, and injected tokens."""

    event: str
    injections: int
    sessions: int
    tokens: int
