"""Digest of a project's past sessions, for the start of a new session.

Each line contains the ID of the entry that it comes from.
"""

from msgspec import Struct

from .conversation import Milliseconds


class DigestLine(Struct, frozen=True):
    """Line of a digest. It describes a decision, a session or a file.

    Attributes:
        id: Public ID of the observation that the line comes from.
        origin: Author of the text.
        notes: Further facts of the observation, such as its open items.
        cited: Number of files that the observation cites.
        changed: Number of cited files that were changed or deleted since the observation, as far as known.
    """

    id: str
    text: str
    at: Milliseconds | None
    origin: str
    notes: tuple[str, ...] = ()
    cited: int = 0
    changed: int = 0

    @property
    def all_text(self) -> str:
        """All texts of the line in one string, for an estimate of its tokens."""
        return " ".join((self.text, *self.notes))


class DigestSection(Struct, frozen=True):
    """Lines under one heading. The lines that are probably most useful come first."""

    title: str
    lines: tuple[DigestLine, ...]
