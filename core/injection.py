"""Injections: text from the archive that a hook adds to the session of a coding agent."""

from enum import StrEnum

from msgspec import Struct

from .conversation import Milliseconds


class HookEvent(StrEnum):
    """Events of a session at which a hook can inject text."""

    SESSION_START = "session-start"
    """Start of a session, and its continuation after a compaction."""
    PROMPT = "prompt"
    """Prompt that the user submitted."""
    TOOL = "tool"
    """Shell command or edit that the agent is about to make."""


class Injection(Struct, frozen=True):
    """Injected text, without the text itself.

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
    """Number of injections at one event, of sessions that got any, and of their tokens."""

    event: str
    injections: int
    sessions: int
    tokens: int
