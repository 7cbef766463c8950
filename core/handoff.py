"""Brief with which another agent continues a session."""

from msgspec import Struct
from msgspec.structs import replace

from .conversation import Milliseconds

HANDOFF_TOKENS = 2_000
"""Maximum tokens of a brief."""


class HandoffLine(Struct, frozen=True):
    """Statement about a session. `source` is the ID of its observation or exchange, and its lines.

    `quoted` is the origin of the text, such as `tool`, unless only the user and the agent wrote it.
    """

    text: str
    source: str
    quoted: str = ""


class HandoffFile(Struct, frozen=True):
    """File that a session changed, with its current content hash (SHA-256) and state: unchanged, changed or missing.

    `path` is relative to the folder of the session if the file is inside it.

    A file counts as changed if it was modified after the end of the session. `source` is the ID of the last exchange
    that changed it.
    """

    path: str
    state: str
    source: str
    sha256: str = ""


class Handoff(Struct, frozen=True):
    """Brief about a session for another agent. `omitted` counts lines that were left out because of the token limit."""

    id: str
    agent: str
    title: str
    project: str
    folder: str
    branch: str
    ended: Milliseconds | None
    goal: tuple[HandoffLine, ...] = ()
    state: tuple[HandoffLine, ...] = ()
    decisions: tuple[HandoffLine, ...] = ()
    failed: tuple[HandoffLine, ...] = ()
    open: tuple[HandoffLine, ...] = ()
    files: tuple[HandoffFile, ...] = ()
    omitted: int = 0

    def shortened(self) -> "Handoff":
        """Return the brief without the last line of its longest section, or itself if it has no line."""
        sections = {name: getattr(self, name) for name in ("files", "state", "failed", "decisions", "open", "goal")}
        name, lines = max(sections.items(), key=lambda section: len(section[1]))
        return replace(self, **{name: lines[:-1]}, omitted=self.omitted + 1) if lines else self
