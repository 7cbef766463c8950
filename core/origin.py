"""Whose word something is, and how far it is trusted. Both are set by code when a thing is stored and never rise."""

from collections.abc import Iterable
from enum import IntEnum, StrEnum


class Trust(IntEnum):
    """How far something may be relied on without asking. Low trust is never injected and never becomes a rule."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2


class Origin(StrEnum):
    """Who said it, from the most trusted to the least. `tool` is what a program printed on this machine; `external`
    came from outside it: the web, another server.
    """

    HUMAN = "human"
    ASSISTANT = "assistant"
    DOCUMENT = "document"
    IMPORTED = "imported"
    TOOL = "tool"
    EXTERNAL = "external"

    @property
    def trust(self) -> Trust:
        """How far this origin is trusted."""
        return _TRUST[self]


_TRUST = {
    Origin.HUMAN: Trust.HIGH,
    Origin.ASSISTANT: Trust.MEDIUM,
    Origin.DOCUMENT: Trust.MEDIUM,
    Origin.IMPORTED: Trust.LOW,
    Origin.TOOL: Trust.LOW,
    Origin.EXTERNAL: Trust.LOW,
}
_RANK = {origin: rank for rank, origin in enumerate(Origin)}


def least(origins: Iterable[Origin]) -> Origin:
    """The least trusted of one or more origins: what something made from all of them has."""
    return max(origins, key=_RANK.__getitem__)
