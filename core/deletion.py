"""Values of a deletion: the request, the preview, the result and the list of earlier deletions."""

from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from .conversation import Milliseconds

UNDO_PERIOD: Final = 30 * 24 * 3600 * 1000
"""Milliseconds during which a deletion can be undone."""


class DeletionRequest(Struct, frozen=True):
    """Selection of content to delete.

    Each target adds content to the selection. The other conditions, such as projects and times, narrow the selection.

    A target is one of:

    - the ID of an exchange, an observation or a memory (an observation selects its whole exchange)
    - the ID of a session, or at least its first four characters
    - the path of a transcript or of its raw copy
    - a session or a path with `:FIRST-LAST`, which selects the exchanges on these lines

    Attributes:
        projects: Names or folders of projects.
        since: First instant, inclusive.
        until: Last instant, exclusive.
        mentions: Text that must occur, ignoring case.
        erase: True to remove every byte, False to hide the content.
        force: True to include golden rules and pinned memories.
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
    """Session from which `exchanges` exchanges are deleted, or all content if `whole` is true."""

    session_id: str
    agent: str
    project: str
    title: str
    exchanges: int
    whole: bool


class DeletedCopy(Struct, frozen=True):
    """Raw copy from which lines are removed, or which is deleted if `whole` is true.

    `path` is the agent's own file. `size` is in bytes.
    """

    archived: str
    path: str
    lines: int
    size: int
    whole: bool


class DeletedMemory(Struct, frozen=True):
    """Memory selected for deletion."""

    id: str
    type: str
    title: str


class DeletionPreview(Struct, frozen=True):
    """The exact extent of a deletion.

    Attributes:
        token: Token that confirms exactly this extent.
        erase: True if every byte is removed.
        observations: Number of observations extracted from the deleted exchanges.
        copies: Raw copies from which lines are removed.
        protected: IDs of golden rules and pinned memories, which are deleted only with `force`.
        files: Memory files in the user's projects. Only an erasure deletes these files.
        repeated_in: Number of other raw copies from which lines are removed because they repeat deleted lines.
        kept_lines: Number of lines of deleted copies that are kept because another session contained them first.
        sent: Number of exchanges that were sent to a language model.
        unreadable: Names of raw copies that could not be searched.
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
    """Verification of an erasure: a search for samples of the erased text in every file and in the index.

    Attributes:
        samples: Number of distinctive pieces of erased text that the check searched for.
        files: Number of files that were read.
        size: Number of bytes that were read.
        searches: Number of index searches.
        found: Files that still contain a sample.
        hits: IDs of erased items that a search still returned.
        uncleaned: Raw copies from which lines could not be erased.
        problems: Explanations for `uncleaned`.
        compacted: False if another process prevented compaction of the database.
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
        """True if everything was searched and no erased content was found."""
        return not (self.found or self.hits or self.unreadable or self.uncleaned) and self.compacted


class DeletionResult(Struct, frozen=True):
    """Result of a confirmed deletion.

    Attributes:
        preview: Extent of the deletion. If the token did not match, this is a new preview.
        number: ID of the deletion, for undo, or None if nothing was deleted.
        until: Last moment at which the deletion can be undone, or None for an erasure.
        check: Verification of an erasure.
        originals: The agents' own files, which are kept.
        remaining_files: Memory files that could not be deleted, each with the reason.
    """

    preview: DeletionPreview
    number: int | None
    until: Milliseconds | None
    check: ErasureCheck | None = None
    originals: tuple[str, ...] = ()
    remaining_files: tuple[str, ...] = ()


class RestoreResult(Struct, frozen=True):
    """Content that the undo of a deletion could not restore.

    Attributes:
        not_restored: IDs of memories that stay deleted because a newer memory has the same content.
        unobserved: Number of exchanges without observations, which the next ingest run extracts.
    """

    not_restored: tuple[str, ...] = ()
    unobserved: int = 0


class DeletionSummary(Struct, frozen=True):
    """Numbers of items that a deletion removed.

    `projects`, and `titles` of the sessions, are stored only while the deletion can be undone.
    """

    sessions: int = 0
    exchanges: int = 0
    observations: int = 0
    memories: int = 0
    agents: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    titles: tuple[str, ...] = ()


class DeletionState(StrEnum):
    """Progress of a deletion."""

    KEPT = "kept"
    """The deletion can be undone."""
    ERASING = "erasing"
    """The deleted content is being removed from the archive."""
    ERASED = "erased"
    """All deleted content has been removed."""


class Deletion(Struct, frozen=True):
    """Past deletion.

    Attributes:
        id: ID of the deletion, for undo.
        marks: Number of tombstones. Each deleted line has two or three.
        summary: Number of removed items. All numbers are 0 if the database has been lost since.
    """

    id: int
    at: Milliseconds
    state: DeletionState
    marks: int
    summary: DeletionSummary = DeletionSummary()

    @property
    def until(self) -> Milliseconds | None:
        """Last moment at which the deletion can be undone, or None if it cannot be undone."""
        return self.at + UNDO_PERIOD if self.state is DeletionState.KEPT else None
