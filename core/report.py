"""Reports of ingest runs and of the state of the archive, for `up`, `archive` and `status`."""

from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field

from .conversation import Milliseconds
from .errors import ModelUnavailable, SourceUnreadable


class Unsearched(Struct):
    """Folders that were not searched for transcripts.

    `homes` are Palaver homes. `links` are symbolic links to folders outside the searched root folder.
    """

    homes: set[Path] = field(default_factory=set[Path])
    links: set[Path] = field(default_factory=set[Path])


class OmittedFile(NamedTuple):
    """File that an ingest run did not archive, and the reason."""

    path: Path
    reason: str


class IngestReport(Struct):
    """Result of reading transcripts in an ingest run.

    Attributes:
        seen: Number of files that were found.
        foreign: Number of files of an unknown format.
        excluded: Number of files that the settings exclude.
        omitted: The files that `foreign` and `excluded` count.
        still_archived: Number of sessions that were archived before their folder was excluded.
        changed: Number of files with new content.
        lines: Number of parsed lines.
        repeated: Number of these lines that repeat lines of other transcripts, such as those of a copy.
        exchanges: Number of parsed exchanges, including exchanges that were parsed again because they grew.
        reread: Number of unchanged raw copies that were parsed again, for example with newer redaction rules.
        outdated: Number of raw copies that the next run must parse again.
        skipped: Folders that were not searched.
        problems: Files that could not be read.
    """

    seen: int = 0
    foreign: int = 0
    excluded: int = 0
    omitted: list[OmittedFile] = field(default_factory=list[OmittedFile])
    still_archived: int = 0
    changed: int = 0
    lines: int = 0
    repeated: int = 0
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
    copies that were not exported. `secrets` counts the secrets in original files by kind. It is None for redacted
    files.
    """

    folder: Path
    files: list[ExportedFile] = field(default_factory=list[ExportedFile])
    present: int = 0
    unverified: int = 0
    warnings: list[SourceUnreadable] = field(default_factory=list[SourceUnreadable])
    problems: list[SourceUnreadable] = field(default_factory=list[SourceUnreadable])
    secrets: dict[str, int] | None = None


class Report(Struct):
    """Result of all stages of an ingest run.

    Attributes:
        observed: Number of exchanges that the extraction rules processed.
        embedded: Number of items that were embedded.
        elsewhere: True if another process extracts observations from the new content and embeds it.
        reindexed: True if an index of another version was rebuilt.
        searchable: Seconds until the new content could be searched.
        complete: Seconds until all stages were complete.
        model: Reason why semantic search is unavailable, or None.
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
    """State of a stage: the times of its last success and its last failure, and the problem of this failure.

    `succeeded` is None if the stage never succeeded. If it never failed, `failed` is None and `problem` is empty.
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
    """Process that holds a lease, and the time it acquired the lease.

    `stage` is the stage that it runs, such as `Embedding`, with `done` of `total` steps. It is empty if unknown.
    """

    who: str
    since: Milliseconds
    stage: str = ""
    done: int = 0
    total: int = 0


class LineCount(NamedTuple):
    """Raw copy with unaccounted lines. `accounted` is the number of its parsed, repeated and skipped lines."""

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
    """Number of different secrets of one kind, such as `password-hash`, and number of all their occurrences."""

    different: int
    times: int


class Status(Struct, frozen=True):
    """State of the archive.

    `lines == parsed + repeated + sum(skipped.values())` always holds, in total and for every raw copy.

    Attributes:
        pending_bytes: Number of bytes in incomplete last lines.
        index: Description of the index.
        index_lag: Number of changes that are not in the published index. They are searched too.
        index_usable: False if search does not use the index.
        unaccounted: Raw copies for which this equation does not hold.
        problems: Files that could not be read at the last attempt.
        refused: Number of extracted facts that were refused because they have no evidence.
        watcher: Background archiver, or None if it is not running.
        running: Processes that ingest, extract observations or embed now, with their progress.
        verified: Number of raw copies that were verified, all of them at `verified_since` or later.
        damaged: Raw copies that failed verification.
        projects: Number of projects with a session or a memory.
        empty_sessions: Number of sessions without exchanges, which no list contains and `sessions` does not count.
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
    running: list[Holder] = field(default_factory=list[Holder])
    stages: list[StageState] = field(default_factory=list[StageState])
    verified: int = 0
    verified_since: Milliseconds | None = None
    damaged: list[FileProblem] = field(default_factory=list[FileProblem])
    projects: int = 0
    empty_sessions: int = 0


class SessionSecrets(Struct, frozen=True):
    """Number of redacted secrets of each kind in one raw copy, without the secrets themselves."""

    session_id: str
    project: str
    path: str
    kinds: dict[str, int]


class Secrets(Struct, frozen=True):
    """Redacted secrets of the whole archive.

    `kinds` maps each kind of secret to its counts. `outdated` is the number of raw copies that were parsed with older
    redaction rules. `memories` maps each memory ID to the number of secrets in the memory by kind.
    """

    version: str
    kinds: dict[str, KindCount]
    sessions: list[SessionSecrets]
    outdated: int
    memories: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
