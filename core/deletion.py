"""Values of a deletion: the request, the preview, the result and the list of past deletions."""

from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from .conversation import Milliseconds

UNDO_PERIOD: Final = 30 * 24 * 3600 * 1000
"""Milliseconds during which a deletion can be undone."""


class DeletionRequest(Struct, frozen=True):
    """The content to delete. Every target adds to the selection; all other fields narrow it.

    A target is one of:

    - the id of an exchange, of an observation (stands for its exchange) or of a memory;
    - the id of a session, or its first six or more characters;
    - the path of a transcript or of its copy;
    - a session or a path with `:FIRST-LAST`, for the exchanges on these lines.

    Attributes:
        targets: Ids and paths.
        projects: Names or folders of projects.
        agents: Names of agents.
        since: First moment, inclusive.
        until: Last moment, exclusive.
        mentions: Text that must occur, in any case.
        erase: Remove every byte instead of only hiding the content.
        force: Include golden rules and pinned memories.
    """

    targets: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    since: Milliseconds | None = None
    until: Milliseconds | None = None
    mentions: str = ""
    erase: bool = False
    force: bool = False

    @property
    def selects_everything(self) -> bool:
        """True if no field restricts the selection."""
        return not (self.targets or self.projects or self.agents or self.mentions or self.since or self.until)


class DeletedSession(Struct, frozen=True):
    """A session that loses `exchanges` exchanges, or all content if `whole`."""

    session_id: str
    agent: str
    project: str
    title: str
    exchanges: int
    whole: bool


class DeletedCopy(Struct, frozen=True):
    """A raw copy that loses lines, or is deleted if `whole`. `path` is the agent's own file, `size` is in bytes."""

    archived: str
    path: str
    lines: int
    size: int
    whole: bool


class DeletedMemory(Struct, frozen=True):
    """A memory of the selection."""

    id: str
    type: str
    title: str


class DeletionPreview(Struct, frozen=True):
    """The exact extent of a deletion.

    Attributes:
        token: Confirms this extent and no other.
        erase: Whether every byte is removed.
        sessions: Sessions that lose content.
        exchanges: Number of exchanges.
        observations: Number of observations extracted from these exchanges.
        copies: Raw copies that lose lines.
        memories: Memories that are deleted.
        protected: Ids of golden rules and pinned memories, which are deleted only by force.
        files: Memory files in the user's projects. Only an erasure deletes them.
        repeated_in: Number of other copies that repeat some of the lines and lose them, too.
        kept_lines: Number of lines that stay in other sessions, because those contained them first.
        sent: Number of exchanges that were sent to a language model.
        unreadable: Names of copies that could not be searched.
    """

    token: str
    erase: bool = False
    sessions: tuple[DeletedSession, ...] = ()
    exchanges: int = 0
    observations: int = 0
    copies: tuple[DeletedCopy, ...] = ()
    memories: tuple[DeletedMemory, ...] = ()
    protected: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    repeated_in: int = 0
    kept_lines: int = 0
    sent: int = 0
    unreadable: tuple[str, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if nothing matches the request."""
        return not (self.sessions or self.exchanges or self.observations or self.copies or self.memories)


class ErasureCheck(Struct):
    """Verification of an erasure: `samples` of the erased text were searched in every file and in the index.

    Attributes:
        samples: Number of distinctive texts that were searched.
        files: Number of files that were read.
        size: Number of bytes that were read.
        searches: Number of index searches.
        found: Files that still contain a sample.
        hits: Ids of erased items that a search still returned.
        unreadable: Files that could not be read.
        uncleaned: Copies from which lines could not be erased.
        problems: Explanations for `uncleaned`.
        compacted: False if another process kept the database from being compacted.
    """

    samples: int = 0
    files: int = 0
    size: int = 0
    searches: int = 0
    found: list[str] = field(default_factory=list[str])
    hits: list[str] = field(default_factory=list[str])
    unreadable: list[str] = field(default_factory=list[str])
    uncleaned: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    compacted: bool = True

    @property
    def passed(self) -> bool:
        """True if nothing of the erased content was found and everything was searched."""
        return not (self.found or self.hits or self.unreadable or self.uncleaned) and self.compacted


class DeletionResult(Struct, frozen=True):
    """The result of a confirmed deletion.

    Attributes:
        preview: What was deleted; the new preview if the token did not match.
        number: Number of the deletion, for undo; None if nothing was deleted.
        until: Last moment at which it can be undone; None for an erasure.
        check: Verification of an erasure.
        originals: The agents' own files, which stay.
        remaining_files: Memory files that could not be deleted, each with the reason.
    """

    preview: DeletionPreview
    number: int | None
    until: Milliseconds | None
    check: ErasureCheck | None = None
    originals: tuple[str, ...] = ()
    remaining_files: tuple[str, ...] = ()


class RestoreResult(Struct, frozen=True):
    """The limits of an undo.

    Attributes:
        not_restored: Ids of memories that stay deleted, because a newer memory has the same content.
        unobserved: Number of exchanges from which the next ingest run extracts observations.
    """

    not_restored: tuple[str, ...] = ()
    unobserved: int = 0


class DeletionSummary(Struct, frozen=True):
    """Counts of what a deletion removed. `projects` is stored only while the deletion can be undone."""

    sessions: int = 0
    exchanges: int = 0
    observations: int = 0
    memories: int = 0
    agents: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()


class DeletionState(StrEnum):
    """Progress of a deletion."""

    KEPT = "kept"
    """It can be undone."""
    ERASING = "erasing"
    """Its content is being removed from the archive."""
    ERASED = "erased"
    """Nothing of its content is left."""


class Deletion(Struct, frozen=True):
    """A deletion of the past.

    Attributes:
        id: Number, for undo.
        at: Moment of the deletion.
        state: Progress.
        marks: Number of tombstones, two or three for each line.
        summary: Counts; empty if the database was lost since.
    """

    id: int
    at: Milliseconds
    state: DeletionState
    marks: int
    summary: DeletionSummary = DeletionSummary()

    @property
    def until(self) -> Milliseconds | None:
        """Last moment at which it can be undone; None if it cannot."""
        return self.at + UNDO_PERIOD if self.state is DeletionState.KEPT else None
