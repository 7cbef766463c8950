"""Digest of a project's past sessions: lines for a new session, each with the ID of the entry that it is from."""

from msgspec import Struct

from .conversation import Milliseconds


class DigestLine(Struct, frozen=True):
    """One decision, session or file.

    Attributes:
        id: Public ID of the observation that the line is from.
        origin: Author of the text.
        notes: Further facts of the observation, such as its open items.
        cited: Number of files that the observation cites.
        changed: Number of cited files that are known to be different or gone since then.
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
        """All texts of the line, to estimate its tokens."""
        return " ".join((self.text, *self.notes))


class DigestSection(Struct, frozen=True):
    """Lines under one heading, most likely useful first."""

    title: str
    lines: tuple[DigestLine, ...]
