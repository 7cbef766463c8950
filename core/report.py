"""What a pass over the transcripts did, and how the archive is: the values behind `up`, `archive` and `status`."""

from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field

from .conversation import Milliseconds
from .errors import ModelUnavailable, SourceUnreadable


class Unsearched(Struct):
    """Folders not searched for transcripts: Palaver homes, and directory links that leave their root."""

    homes: set[Path] = field(default_factory=set[Path])
    links: set[Path] = field(default_factory=set[Path])


class Pass(Struct):
    """What one pass saw and took up. `lines` and `exchanges` were read; old ones that grew are read again.

    `foreign` of the files seen were written by no known agent and left alone, and `excluded` ones by the settings.
    `still_archived` sessions were archived before the settings excluded them.
    `reread` copies were read again by newer rules for secrets, and `outdated` ones wait for that.
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
    """Copies that were compressed, their bytes before and after, and how many wait for the next run."""

    compressed: int = 0
    before: int = 0
    after: int = 0
    waiting: int = 0
    problems: list[SourceUnreadable] = field(default_factory=list[SourceUnreadable])


class VerifiedCopies(Struct):
    """Copies that were verified, and the damaged ones among them that were repaired or not."""

    checked: int = 0
    repaired: int = 0
    damaged: int = 0


class ExportedFile(Struct, frozen=True):
    """Exported file of an agent: archive path, path written to, size in bytes, SHA-256."""

    archived: str
    path: Path
    size: int
    sha256: str


class Exported(Struct):
    """What was given back below a folder; `present` of the files were there already, with the same bytes.

    Copies of `unverified` ones have no checksums yet. `warnings` are about exported copies, `problems` about those that
    were not exported.
    """

    folder: Path
    files: list[ExportedFile] = field(default_factory=list[ExportedFile])
    present: int = 0
    unverified: int = 0
    warnings: list[SourceUnreadable] = field(default_factory=list[SourceUnreadable])
    problems: list[SourceUnreadable] = field(default_factory=list[SourceUnreadable])


class Report(Struct):
    """What all stages did. Times are seconds from the start; `model` is why meaning cannot be searched, if so.

    With `elsewhere` another process observes and embeds at this moment, and this pass left that to it. With `reindexed`
    another version of Palaver had made the index, and it was made anew.
    """

    ingested: Pass = field(default_factory=Pass)
    observed: int = 0
    embedded: int = 0
    elsewhere: bool = False
    reindexed: bool = False
    compression: Compression = field(default_factory=Compression)
    searchable: float = 0.0
    complete: float = 0.0
    model: ModelUnavailable | None = None


class StageState(Struct, frozen=True):
    """A stage, its last success, and its last problem with the time of that; None and empty where there was none."""

    name: str
    succeeded: Milliseconds | None
    problem: str
    failed: Milliseconds | None

    @property
    def fails(self) -> bool:
        """Whether it has not succeeded since its last problem."""
        return self.failed is not None and (self.succeeded is None or self.succeeded < self.failed)


class Holder(Struct, frozen=True):
    """Who holds a lease at this moment, and since when."""

    who: str
    since: Milliseconds


class LineCount(NamedTuple):
    """Copy whose lines are not all accounted for."""

    path: str
    lines: int
    accounted: int


class FileProblem(NamedTuple):
    """File that could not be read or is damaged, and the reason."""

    path: Path | str
    reason: str


class KindCount(NamedTuple):
    """Number of different secrets of a kind, and of all their occurrences."""

    different: int
    times: int


class Status(Struct, frozen=True):
    """How the archive is. Always `lines == parsed + repeated + sum(skipped.values())`, in the whole and in every copy.

    `pending_bytes` belong to last lines that are still being written. `index_lag` counts changes that the published
    index does not hold yet (they are searched all the same); `index` says in words how it is. `unaccounted` names the
    copies of which that is not true, with their lines and how many are accounted for. `problems` are files that could
    not be read at the last attempt, and why. `refused` facts were not kept, because no line bears them out. `watcher`
    is the background archiver where one runs; `stages` tell when each part of the work last succeeded. `verified`
    copies were verified, each at `verified_since` or later; `damaged` copies have the reason.
    `given_up` requests to a language model will not be tried again by themselves.
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
    unaccounted: list[LineCount]
    problems: list[FileProblem]
    refused: int = 0
    watcher: Holder | None = None
    stages: list[StageState] = field(default_factory=list[StageState])
    verified: int = 0
    verified_since: Milliseconds | None = None
    damaged: list[FileProblem] = field(default_factory=list[FileProblem])
    given_up: int = 0


class SessionSecrets(Struct, frozen=True):
    """The secrets that were taken out of one copy: how often each kind stood there. Never the secrets themselves."""

    session_id: str
    project: str
    path: str
    kinds: dict[str, int]


class Secrets(Struct, frozen=True):
    """The secrets that were taken out of the whole archive.

    `kinds` says for each kind how many different secrets there are, and how often they stood somewhere. `outdated`
    copies were read by older rules; the next pass reads them again. `memories` says by
    id how often each kind stood there.
    """

    version: str
    kinds: dict[str, KindCount]
    sessions: list[SessionSecrets]
    outdated: int
    memories: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
