"""What is to be forgotten: how it is named, what a preview of it shows, and what became of it."""

from pathlib import Path
from typing import Final

from msgspec import Struct, field

from .conversation import Milliseconds
from .memory import StoredMemory


class DeletionRequest(Struct, frozen=True):
    """What somebody names. Each of `targets` adds to the set; everything else narrows it.

    A target is the id of an exchange, an observation (which stands for its exchange) or a memory, the id of a session
    or its first characters, or the path of a transcript, with `:FIRST-LAST` for some of its lines. `projects` are names
    or folders. `mentions` is text that has to stand there, in upper or lower case.
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
    def names_nothing(self) -> bool:
        """Whether it would be everything there is."""
        return not (self.targets or self.projects or self.agents or self.mentions or self.since or self.until)


class DeletedSession(Struct, frozen=True):
    """A session of which something goes: how many of its exchanges, and whether nothing of it is left."""

    session_id: str
    agent: str
    project: str
    title: str
    exchanges: int
    whole: bool


class DeletedCopy(Struct, frozen=True):
    """A copy in the archive that goes as a `whole`, or loses lines. `path` is where the agent keeps its own."""

    archived: str
    path: Path
    lines: int
    size: int
    whole: bool


class DeletedFile(Struct, frozen=True):
    """A file of a person's project in which a memory is kept. `digest` tells its bytes as they were shown."""

    path: str
    digest: str


class Widened(Struct, frozen=True):
    """Lines of a copy that go because an exchange goes as a whole, of which a `target` named only a part."""

    target: str
    archived: str
    start_line: int
    end_line: int


class DeletionPreview(Struct, frozen=True):
    """Exactly what would go. `token` stands for this set and no other; `sent` exchanges went to a language model.

    `protected` memories are golden or pinned, and stay unless forced. `shared` copies repeat some of the lines. `files`
    are those in which people keep the memories: they go where `erase` is meant, and stay otherwise. `unread` copies are
    damaged: nobody knows whether some of it stands there. `kept` lines repeat what other sessions said first, and
    stay in those.
    """

    token: str
    sessions: tuple[DeletedSession, ...] = ()
    exchanges: int = 0
    observations: int = 0
    copies: tuple[DeletedCopy, ...] = ()
    memories: tuple[StoredMemory, ...] = ()
    protected: tuple[StoredMemory, ...] = ()
    shared: int = 0
    sent: int = 0
    erase: bool = False
    widened: tuple[Widened, ...] = ()
    files: tuple[DeletedFile, ...] = ()
    unread: tuple[str, ...] = ()
    kept: int = 0

    @property
    def empty(self) -> bool:
        """Whether there is nothing to forget."""
        return not (self.sessions or self.exchanges or self.observations or self.copies or self.memories)


class ErasureCheck(Struct):
    """How it was verified: `samples` of what was erased were looked for in every byte, and searched for.

    `found` names the files of the home in which one still stands, `hits` the searches that still found something.
    `unread` files could not be read and verified, and `uncleaned` copies may hold it still: the `problems` say why.
    `compacted` is False where another process kept the database from being emptied.
    """

    samples: int = 0
    files: int = 0
    size: int = 0
    searches: int = 0
    found: list[str] = field(default_factory=list[str])
    hits: list[str] = field(default_factory=list[str])
    unread: list[str] = field(default_factory=list[str])
    uncleaned: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    compacted: bool = True

    @property
    def holds(self) -> bool:
        """Whether nothing of it is left."""
        return not (self.found or self.hits or self.unread or self.uncleaned) and self.compacted


class DeletionResult(Struct, frozen=True):
    """What became of it. `number` is that of the forgetting, by which it can be undone until `until`; None for none."""

    preview: DeletionPreview
    number: int | None
    until: Milliseconds | None
    proof: ErasureCheck | None = None
    outside: tuple[Path, ...] = ()
    """The agents' own files, which stay."""
    left: tuple[str, ...] = ()
    """Files of memories that were to be deleted and are still there, each with the reason."""


class RestoreResult(Struct, frozen=True):
    """Items that undoing a deletion did not restore.

    `left` memories stay archived, because another memory says the same by now. The next ingest run extracts
    observations from `unobserved` exchanges.
    """

    left: tuple[StoredMemory, ...] = ()
    unobserved: int = 0


class DeletionSummary(Struct, frozen=True):
    """What a forgetting was about, without a word of it: how much, of which agents.

    `projects`, and `first` and `last`, when it was said, are told only while it can be undone.
    """

    sessions: int = 0
    exchanges: int = 0
    observations: int = 0
    memories: int = 0
    agents: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    first: Milliseconds | None = None
    last: Milliseconds | None = None


NO_SUMMARY: Final = DeletionSummary()


class PastDeletion(Struct, frozen=True):
    """A forgetting of the past. `until` is how long it can be undone; None for what was erased.

    `about` is empty where the database was lost since: then only the `marks` are known, two or three for each line.
    """

    number: int
    at: Milliseconds
    until: Milliseconds | None
    marks: int
    finished: bool = True
    about: DeletionSummary = NO_SUMMARY
