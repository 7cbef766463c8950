"""Origin and trust of stored text. Palaver sets both when it stores a text, and never increases the trust later."""

from collections.abc import Iterable
from enum import IntEnum, StrEnum


class Trust(IntEnum):
    """Trust level of a text. A text with low trust is never injected into a session and never becomes a golden rule."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2


class Origin(StrEnum):
    """Author of a text, from the most trusted to the least trusted.

    `tool` is output of a program on this machine. `external` is text from other machines, such as a web page.
    """

    HUMAN = "human"
    ASSISTANT = "assistant"
    DOCUMENT = "document"
    IMPORTED = "imported"
    TOOL = "tool"
    EXTERNAL = "external"

    @property
    def trust(self) -> Trust:
        """Trust level of the origin."""
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
    """Return the least trusted of one or more origins.

    A text that combines texts of several origins has this origin.
    """
    return max(origins, key=_RANK.__getitem__)
