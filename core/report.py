"""Reports of ingest runs and of the state of the archive, for `up`, `archive` and `status`."""

from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field

from .conversation import Milliseconds
from .errors import ModelUnavailable, SourceUnreadable


class Unsearched(Struct):
    """Folders not searched for transcripts: Palaver homes, and directory links that point outside their root."""

    homes: set[Path] = field(default_factory=set[Path])
    links: set[Path] = field(default_factory=set[Path])


class IngestReport(Struct):
    """Result of reading transcripts in an ingest run.

    Attributes:
        seen: Files that were found.
        foreign: Files of an unknown format.
        excluded: Files that the settings exclude.
        still_archived: Sessions that were archived before their folder was excluded.
        changed: Files with new content.
        lines: Parsed lines.
        exchanges: Parsed exchanges, including those parsed again because they grew.
        reread: Raw copies that were parsed again with newer rules.
        outdated: Raw copies that are left for the next run.
        skipped: Homes and links that were not searched.
        problems: Files that could not be read.
    """

    seen: int = 0
    foreign: int = 0
    excluded: int = 0
    still_archived: int = 0
    changed: int = 0
    lines: int = 0
    exchanges: int = 0
    reread: int = 0
    outdated: int = 0
    skipped: Unsearched = field(default_factory=Unsearched)
    problems: list[SourceUnreadable] = field(default_factory=list[SourceUnreadable])


class Compression(Struct):
    """Number of compressed raw copies, their bytes before and after, and the number left for the next run."""

    compressed: int = 0
    before: int = 0
    after: int = 0
    waiting: int = 0
    problems: list[SourceUnreadable] = field(default_factory=list[SourceUnreadable])


class VerifiedCopies(Struct):
    """Number of verified raw copies, of repaired copies, and of damaged copies that could not be repaired."""

    checked: int = 0
    repaired: int = 0
    damaged: int = 0


class ExportedFile(Struct, frozen=True):
    """Exported file of an agent: archive path, output path, size in bytes, SHA-256."""

    archived: str
    path: Path
    size: int
    sha256: str


class Exported(Struct):
    """Result of an export to a folder. `present` counts files that already existed with the same content.

    The raw copies of `unverified` files have no checksums yet. `warnings` concern exported copies. `problems` concern
    copies that were not exported.
    """

    folder: Path
    files: list[ExportedFile] = field(default_factory=list[ExportedFile])
    present: int = 0
    unverified: int = 0
    warnings: list[SourceUnreadable] = field(default_factory=list[SourceUnreadable])
    problems: list[SourceUnreadable] = field(default_factory=list[SourceUnreadable])


class Report(Struct):
    """Result of all stages of an ingest run.

    Times are seconds from the start. `model` is the reason why semantic search is unavailable, if any. `elsewhere` is
    True if another process observes and embeds the new content. `reindexed` is True if an index of another version was
    rebuilt.
    """

    ingested: IngestReport = field(default_factory=IngestReport)
    observed: int = 0
    embedded: int = 0
    elsewhere: bool = False
    reindexed: bool = False
    compression: Compression = field(default_factory=Compression)
    searchable: float = 0.0
    complete: float = 0.0
    model: ModelUnavailable | None = None


class StageState(Struct, frozen=True):
    """State of a stage: the time of its last success, and its last problem with the time.

    `succeeded` is None if the stage never succeeded. `failed` is None and `problem` is empty if it never had a problem.
    """

    name: str
    succeeded: Milliseconds | None
    problem: str
    failed: Milliseconds | None

    @property
    def fails(self) -> bool:
        """True if the stage has not succeeded since its last problem."""
        return self.failed is not None and (self.succeeded is None or self.succeeded < self.failed)


class Holder(Struct, frozen=True):
    """Process that holds a lease, and the time it acquired the lease."""

    who: str
    since: Milliseconds


class LineCount(NamedTuple):
    """Raw copy with lines that are neither parsed nor skipped."""

    path: str
    lines: int
    accounted: int


class FileProblem(NamedTuple):
    """File that is unreadable or damaged, with the reason."""

    path: Path | str
    reason: str


class ProjectCount(NamedTuple):
    """Project with the numbers of its sessions, memories and indexed files, and the time of its last session."""

    name: str
    sessions: int
    memories: int
    last: Milliseconds | None
    files: int = 0


class KindCount(NamedTuple):
    """Number of different secrets of a kind, and number of their occurrences."""

    different: int
    times: int


class Status(Struct, frozen=True):
    """State of the archive.

    `lines == parsed + repeated + sum(skipped.values())` always holds, in total and for every raw copy.

    `pending_bytes` belong to incomplete last lines. `index_lag` counts changes that are not in the published index but
    are still searched. `index` describes the index. `index_usable` is False if search does not use it. `unaccounted`
    raw copies violate the equation. `problems` are files that could not be read at the last attempt. `refused` facts
    have no evidence. `watcher` is the background archiver, if running. `verified` raw copies were verified at
    `verified_since` or later. `damaged` raw copies failed verification. `given_up` requests to a language model are not
    retried automatically. `projects` counts projects with a session or a memory.
    """

    home: Path
    files: int
    size: int
    lines: int
    parsed: int
    repeated: int
    skipped: dict[str, int]
    pending_bytes: int
    sessions: int
    exchanges: int
    unobserved: int
    observations: dict[str, int]
    unembedded: int
    index: str
    index_lag: int
    index_usable: bool
    unaccounted: list[LineCount]
    problems: list[FileProblem]
    refused: int = 0
    watcher: Holder | None = None
    stages: list[StageState] = field(default_factory=list[StageState])
    verified: int = 0
    verified_since: Milliseconds | None = None
    damaged: list[FileProblem] = field(default_factory=list[FileProblem])
    given_up: int = 0
    projects: int = 0


class SessionSecrets(Struct, frozen=True):
    """Number of redacted secrets of each kind in one raw copy, without the secrets themselves."""

    session_id: str
    project: str
    path: str
    kinds: dict[str, int]


class Secrets(Struct, frozen=True):
    """Redacted secrets of the whole archive.

    `kinds` counts different secrets and occurrences. `outdated` raw copies were parsed with older rules. `memories`
    maps each memory ID to the number of occurrences by kind.
    """

    version: str
    kinds: dict[str, KindCount]
    sessions: list[SessionSecrets]
    outdated: int
    memories: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
