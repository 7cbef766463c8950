"""Reports of ingest runs, maintenance, known commands, injections and model costs, and formatting of amounts.

The commands `up`, `archive`, `status`, `doctor`, `fsck`, `rebuild`, `observe` and `stats` print these reports. Costs
are in billionths of a US dollar.

An injection is text from the archive that a hook adds to the session of a coding agent. A handoff is the brief with
which another agent continues a session.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from .conversation import Milliseconds
from .errors import ModelUnavailable, PalaverError, SourceUnreadable
from .hooks import HookEvent

DOLLAR: Final = 1_000_000_000
"""Number of internal money units per US dollar. One unit is a billionth of a dollar."""
MONEY: Final = "money"
"""Annotation of the type `NanoDollars`. It marks an integer as an amount of money."""
NanoDollars: TypeAlias = Annotated[int, MONEY]


def many(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun, for example `1 entry` or `2,689 entries`. The default plural adds an `s`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def grouped(number: int) -> str:
    """Return a number with thousands separators."""
    return f"{number:,}"


def size(count: int) -> str:
    """Format a number of bytes, for example `12 bytes`, `40 kB`, `0.4 MB` or `1.5 GB`."""
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    if count >= 1e5:
        return f"{count / 1e6:.1f} MB"
    return f"{count / 1e3:.0f} kB" if count >= 1e3 else many(count, "byte")


def dollars(cost: NanoDollars) -> str:
    """Format an amount of money: two decimals, or six decimals for less than a cent."""
    amount = cost / DOLLAR
    return f"${amount:.2f}" if amount >= 0.01 or not cost else f"${amount:.6f}"


def encrypted_conversations(counts: Mapping[str, int]) -> str:
    """Describe files that only their agent can decrypt, given their number by agent."""
    files = ", ".join(f"{agent} ({many(count, 'file')})" for agent, count in counts.items())
    return f"conversations that only the agent can read: {files}. Details: docs/formats.md"


class HealthProblem(Struct, frozen=True):
    """Problem of one component of a home, such as the database, with the remedy.

    If `repaired` is true, the problem is solved and `remedy` describes the remaining steps, if any.
    """

    part: str
    problem: str
    remedy: str
    repaired: bool = False


class ConsistencyReport(Struct, frozen=True):
    """Result of `fsck`: the number of checked items by kind, notes by checked component, and the problems found."""

    home: Path
    checked: dict[str, int] = field(default_factory=dict[str, int])
    notes: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[HealthProblem] = field(default_factory=list[HealthProblem])

    @property
    def ok(self) -> bool:
        """True if there was no problem, or if all problems were repaired."""
        return all(problem.repaired for problem in self.problems)


class HealthReport(Struct, frozen=True):
    """Result of `doctor`: a fact about each checked component, by label, and the problems found."""

    home: Path
    facts: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[HealthProblem] = field(default_factory=list[HealthProblem])

    @property
    def healthy(self) -> bool:
        """True if no problem was found."""
        return not self.problems


class RebuildReport(Struct, frozen=True):
    """Result of `rebuild`: the new index, its number of entries and vectors, and the raw copies read.

    `reread` raw copies were parsed again. `recovered` raw copies had no database row. `problems` lists raw copies that
    could not be read.
    """

    generation: str
    entries: int
    vectors: int
    reread: int = 0
    recovered: int = 0
    problems: list[HealthProblem] = field(default_factory=list[HealthProblem])


class Remedy(StrEnum):
    """Action that repaired the failure of a command."""

    INSTEAD = "instead"
    """Another command succeeded in place of the failed command."""
    BEFORE = "before"
    """Another command was run first. Then the failed command succeeded."""
    EDIT = "edit"
    """Files were edited. Then the failed command succeeded."""


class KnownFix(Struct, frozen=True):
    """Failed command, and the command or edit that repaired the failure.

    Attributes:
        id: ID of the newest exchange with this fix.
        at: Time of that exchange.
        command: Command that failed.
        error: Line of the output of `command` that states the failure.
        worked: Command that repaired the failure. Empty for `EDIT`.
        files: Files that were edited.
        sessions: Number of sessions with this fix.
        exact: True if `error` contains every word of the error that was searched, also IDs such as that of a commit.
        start_line: Line of the transcript with the failed command. The repair ends on `end_line`.
    """

    id: str
    project: str
    at: Milliseconds | None
    command: str
    error: str
    remedy: Remedy
    worked: str = ""
    files: tuple[str, ...] = ()
    sessions: int = 1
    exact: bool = True
    start_line: int = 0
    end_line: int = 0


class ProjectCommand(Struct, frozen=True):
    """Command that a project uses for a task.

    Attributes:
        id: ID of the newest exchange that ran the command.
        at: Time of that exchange.
        command: Beginning of the command, up to the word that names the task.
        usual: Most frequent form of the whole command.
        succeeded: Number of successful runs.
        failed: Number of failed runs.
        sessions: Number of sessions that ran the command.
        start_line: Line of the transcript with the last successful run. Its result is on `end_line`.
    """

    id: str
    project: str
    at: Milliseconds | None
    task: str
    command: str
    usual: str
    succeeded: int
    failed: int
    sessions: int
    start_line: int
    end_line: int


class Injection(Struct, frozen=True):
    """Record of one injection, without the injected text.

    Attributes:
        session_id: ID that the agent gave to the session.
        project: Namespace of the project.
        tokens: Estimated tokens of the text.
        items: Public IDs of the observations, exchanges and memories in the text.
    """

    at: Milliseconds
    event: HookEvent
    session_id: str
    project: str
    tokens: int
    items: tuple[str, ...]


class InjectionTotal(Struct, frozen=True):
    """Totals for one event: number of injections, number of sessions with an injection, and injected tokens."""

    event: str
    injections: int
    sessions: int
    tokens: int


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


class FormatDrift(Struct, frozen=True):
    """Sign that an agent's format changed so that a part of its transcripts is not read.

    Attributes:
        version: Newest version of the agent's program with this sign, if the transcripts name it.
        lines: Number of lines that were not read, or 0 if the sign is no line.
        record_type: Unknown type of the lines, if the sign is one.
        shape: Fields of one such line with their types, without their values.
    """

    agent: str
    version: str
    problem: str
    lines: int = 0
    record_type: str = ""
    shape: str = ""


class ArchivedAgent(NamedTuple):
    """Agent with archived transcripts: its sessions with sub-agents, and its versions in order."""

    agent: str
    sessions: int
    versions: tuple[str, ...]


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
        answering: Number of the process that answers commands of the command line, or None without such a process.
        running: Processes that ingest, extract observations or embed now, with their progress.
        verified: Number of raw copies that were verified, all of them at `verified_since` or later.
        damaged: Raw copies that failed verification.
        projects: Number of projects with a session or a memory.
        empty_sessions: Number of sessions without exchanges, which no list contains and `sessions` does not count.
        agents: The agents with archived transcripts.
        drift: Signs that formats changed so that not everything is read.
        encrypted: Number of the user's files that only their agent can decrypt, by agent.
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
    agents: list[ArchivedAgent] = field(default_factory=list[ArchivedAgent])
    drift: list[FormatDrift] = field(default_factory=list[FormatDrift])
    encrypted: dict[str, int] = field(default_factory=dict[str, int])
    answering: int | None = None


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


class Usage(Struct, frozen=True):
    """Tokens of one or more calls, as counted by the provider. `tokens_in` excludes cached tokens."""

    tokens_in: int = 0
    cache_written: int = 0
    cache_read: int = 0
    tokens_out: int = 0


class Spent(Struct, frozen=True):
    """Calls to one model for one purpose.

    `unanswered` counts calls without an answer. The provider may have charged for them.
    """

    model: str
    reason: str
    calls: int
    unanswered: int
    cost: NanoDollars
    usage: Usage


class Estimate(Struct, frozen=True):
    """Estimated cost of sending sessions, or single exchanges, to a language model.

    Attributes:
        calls: Number of sessions or exchanges to send, each in one call.
        unit: What a call is about: `session` or `exchange`.
        skipped: Number of sessions or exchanges with too little text to send.
        private: Number of those of private projects, which are never sent.
        priced: Source of the prices.
        calls_day: Maximum number of calls in 24 hours, or None without a limit.
    """

    model: str
    calls: int
    unit: str
    skipped: int
    private: int
    tokens_in: int
    tokens_out: int
    cost: NanoDollars
    priced: str
    calls_day: int | None = None


class Extraction(Struct):
    """Result of one run of the extraction with a language model.

    Attributes:
        cards: Number of sessions with a new card.
        learned: Number of single exchanges with new observations.
        nothing: Number of sessions or exchanges in which the model found nothing worth keeping.
        observations: Number of new observations, without cards.
        refused: Number of facts and titles without evidence.
        cut: Number of facts that were left out and of texts that were shortened, because they were above a size limit.
        failed: Number of calls without a valid reply. A later run repeats them.
        problem: Reason of the last failure.
        given_up: Number of sessions or exchanges that are not sent again, because several replies were not valid.
        waiting: Number of sessions or exchanges that the run did not reach.
        stopped: Error that ended the run early.
    """

    asked: int = 0
    cards: int = 0
    learned: int = 0
    nothing: int = 0
    observations: int = 0
    refused: int = 0
    cut: int = 0
    failed: int = 0
    problem: str = ""
    given_up: int = 0
    waiting: int = 0
    cost: NanoDollars = 0
    stopped: PalaverError | None = None


class ReadingCosts(Struct, frozen=True):
    """Estimated tokens of the newest exchanges with observations, if an agent reads them in one of three forms.

    The forms are: the full observations, the dialogue of prompts and answers, and the transcript with thinking, tool
    calls and shortened results.
    """

    exchanges: int = 0
    observations: int = 0
    observation_tokens: int = 0
    dialogue_tokens: int = 0
    transcript_tokens: int = 0


class Stats(Struct, frozen=True):
    """Costs so far, remaining budgets and calls, and estimated tokens for reading observations and transcripts.

    `replies` counts the replies by outcome. `injections` are the totals of the text that hooks injected into sessions.
    """

    spent: list[Spent] = field(default_factory=list[Spent])
    left: dict[str, NanoDollars] = field(default_factory=dict[str, int])
    calls_left: int | None = None
    replies: dict[str, int] = field(default_factory=dict[str, int])
    reading: ReadingCosts = ReadingCosts()
    injections: list[InjectionTotal] = field(default_factory=list[InjectionTotal])


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
