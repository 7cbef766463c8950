"""Reading one archived file: what is new in it, what it tells of its session, and an account of every line."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ...core.conversation import UNINDEXED, Exchange, Fact, Kind, Note, ResumePoint, Session
from ...core.project import WORKTREE
from ..files.clipping import heading_of, one_line, plan_in
from ..files.lines import REPEATED, Line, split
from ..formats import TranscriptFormat
from ..redaction import Redactor
from ..store import Place, Repetition, Source
from ..store.source_table import DELETED
from .exchange_grouping import left_behind
from .exclusion import Exclusion
from .own_output import leave_out
from .parsing import Parsed, parse
from .withholding import withhold, withhold_all

_TITLE_LENGTH = 80
_PICTURES = ("[image", "[picture")
"""How readers begin a line that stands for a picture."""


class Elsewhere(Protocol):
    """What was read before."""

    def places(self, records: Collection[str]) -> Mapping[str, Place]:
        """Where record ids were first seen, as far as they are known."""
        ...

    def descended(self, sources: Collection[int], session: Session) -> Collection[int]:
        """Which of these sources are of sessions that come from this one."""
        ...


class Suppression(Protocol):
    """Lines that the user deleted. False where nothing was deleted."""

    def __bool__(self) -> bool: ...

    def lines(self, path: Path, lines: Iterable[Line]) -> set[int]:
        """Return the numbers of the deleted lines among these lines of the file at `path`."""
        ...

    def records(self, records: Mapping[str, int], *, erased: bool = False) -> set[int]:
        """Return the lines of the deleted records, or only of the erased ones; `records` maps ids to lines."""
        ...


class Boundaries(Struct, frozen=True):
    """Content that is not ingested: Palaver's own files, secrets, excluded folders, deleted lines."""

    home: Path
    redactor: Redactor
    exclusion: Exclusion
    suppression: Suppression | None = None


class Reading:
    """One pass over a source's new lines.

    Afterwards `exchanges` holds what they say, from ordinal `first` on; the source counts every line, the session
    knows what its notes told, and `records` maps new record ids to lines.
    """

    def __init__(
        self,
        known: TranscriptFormat,
        session: Session,
        source: Source,
        elsewhere: Elsewhere,
        boundaries: Boundaries,
    ) -> None:
        self._format, self._session, self._source = known, session, source
        self._elsewhere, self._boundaries = elsewhere, boundaries
        self._found = Parsed(source.resume, source.resume.byte)
        self._entitling: int | None = None
        self.titles: list[Note] = []
        """Titles that name a record, which may belong to another session."""
        self.repetitions: list[Repetition] = []
        """Lines that say again what another file said first."""
        self.preceded: Collection[int] = ()
        """Sources that were read before, and repeat what is said here: their sessions come from this one."""
        self.taken_over: list[Repetition] = []
        """The lines of theirs that are said here first."""

    @property
    def first(self) -> int:
        """The ordinal of the first exchange that was read."""
        return self._found.start.ordinal

    @property
    def is_whole(self) -> bool:
        """Whether it began at the first line."""
        return self._found.start.line == 1

    @property
    def lines(self) -> int:
        """How many lines were read."""
        return len(self._found.outcomes)

    @property
    def exchanges(self) -> list[Exchange]:
        """What was read."""
        return self._found.exchanges

    @property
    def records(self) -> dict[str, int]:
        """The new record ids, and the lines they stand on."""
        return self._found.records

    def run(self, file: BinaryIO, parsed: Parsed | None = None) -> None:
        """Read to the end, or take what somebody `parsed` from the source's resume point on."""
        self._found = parsed or self._parse(file, self._source.resume)
        elsewhere = self._known_elsewhere()
        if self._reaches_back(elsewhere) or (self._is_unindexed and not self.is_whole):
            self._found = self._parse(file, ResumePoint())
            elsewhere = self._known_elsewhere()
        if elsewhere:
            lines = self.records
            self._found = self._parse(file, self._found.start, elsewhere.keys())
            self.repetitions = [
                Repetition(*place, lines[record]) for record, place in elsewhere.items() if place[0] != self._source.id
            ]
        self._drop_deleted(file)
        self._leave_out()
        for note in self._found.notes:
            self._note(note)
        self._describe()
        self._account()
        if self._is_unindexed or self._is_forgotten:
            self.repetitions = []

    def _parse(self, file: BinaryIO, start: ResumePoint, repeated: Collection[str] = frozenset()) -> Parsed:
        return parse(self._format, self._session, start, file, self._boundaries.redactor, repeated)

    @property
    def _is_forgotten(self) -> bool:
        """Whether only what it repeats is left of it."""
        return self._source.coverage.keys() == {DELETED, REPEATED}

    @property
    def _is_unindexed(self) -> bool:
        return self._found.unindexed or UNINDEXED in self._session.links

    def _drop_deleted(self, file: BinaryIO) -> None:
        """Drop lines that the user deleted, in whichever file they are."""
        found, suppression = self._found, self._boundaries.suppression
        if not suppression:
            return
        rows = split(file, start_byte=found.start.byte, start_line=found.start.line)
        gone = suppression.lines(self._source.path, rows) | suppression.records(found.records)
        for place in range(self.lines):
            if found.start.line + place in gone:
                found.outcomes[place] = DELETED
        kept = (replace(each, turns=tuple(t for t in each.turns if t.line not in gone)) for each in found.exchanges)
        found.exchanges = [each for each in kept if each.turns]
        # A fork names its parent on every line, also for lines that stay.
        found.notes = [note for note in found.notes if note.line not in gone or note.fact is Fact.PARENT]
        # Records that undo can restore keep their owner.
        erased = suppression.records(found.records, erased=True)
        found.records = {record: line for record, line in found.records.items() if line not in erased}

    def _leave_out(self) -> None:
        """What nobody said, and what nobody else may know."""
        leave_out(self._found, self._session, self._boundaries.home)
        withhold(self._found, self._session, self._boundaries.exclusion)
        if self._is_unindexed:
            withhold_all(self._found)
            self._session.links[UNINDEXED] = "yes"
            self._session.title, self._session.title_rank = "", -1
            self._source.resume = ResumePoint()

    def _known_elsewhere(self) -> dict[str, Place]:
        """Records that stood on another line before. Asked once for all: most files share nothing with others.

        One on the lines that are read anew is none: a prompt that was queued twice may be told from another line now.
        """
        places, own = self._elsewhere.places(self.records), (self._source.id, self._found.start.line)
        others = {source for source, _ in places.values()} - {self._source.id}
        self.preceded = self._elsewhere.descended(others, self._session) if others else ()
        self.taken_over = [Repetition(*at, self.records[each]) for each, at in places.items() if at[0] in self.preceded]
        return {
            record: place
            for record, place in places.items()
            if place[0] not in self.preceded and (place[0] != own[0] or place < own)
        }

    def _reaches_back(self, elsewhere: Mapping[str, Place]) -> bool:
        """Whether the lines repeat, or go back to, some that stand before the place where reading began."""
        return any(note.fact is Fact.REWOUND and not note.value for note in self._found.notes) or any(
            source == self._source.id for source, _ in elsewhere.values()
        )

    def _note(self, note: Note) -> None:
        session = self._session
        match note.fact:
            case Fact.TITLE if note.about:
                self.titles.append(note)
            case Fact.TITLE:
                entitle(session, note)
            case Fact.CWD:
                session.cwd = session.cwd or note.value
            case Fact.BRANCH:
                session.branch = note.value
            case Fact.VERSION:
                session.version = note.value
            case Fact.MODEL if note.value not in session.models:
                session.models.append(note.value)
            case Fact.PARENT:
                session.parent_id = session.parent_id or note.value
            case Fact.PULL_REQUEST | Fact.CONTINUES:
                session.links[str(note.fact)] = note.value
            case Fact.REWOUND:
                first = int(note.value)
                self._found.exchanges = [left_behind(exchange, first, note.line) for exchange in self.exchanges]
            case _:
                pass

    def _describe(self) -> None:
        """What follows from the exchanges: the session's time, project and, without a better one, title."""
        session = self._session
        times = [at for exchange in self.exchanges for at in (exchange.started, exchange.ended) if at is not None]
        session.started = min([*times, *([session.started] if session.started is not None else [])], default=None)
        session.ended = max([*times, *([session.ended] if session.ended is not None else [])], default=None)
        session.project = project_of(session.cwd) or session.project or _folder_of(self._source.archived)
        if self._source.resume.entitles and session.title_rank == 0:
            session.title, session.title_rank = "", -1
        if session.title_rank < 0:
            self._entitle()

    def _entitle(self) -> None:
        """Call the session by the first prompt."""
        for exchange in self.exchanges:
            prompts = (title_of(turn.text) for turn in exchange.turns if turn.kind is Kind.PROMPT)
            title = next(filter(None, prompts), "")
            if title:
                self._session.title, self._session.title_rank = title, 0
                self._entitling = exchange.ordinal
                return

    def _account(self) -> None:
        """Count the lines, and remember where to go on: at the start of the last exchange, which may still grow."""
        source, found, start = self._source, self._found, self._found.start
        source.lines = start.line - 1 + self.lines
        source.coverage = dict(Counter(start.coverage) + Counter(found.outcomes))
        source.parsed, source.pending = found.end, found.pending
        if self.exchanges:
            last = self.exchanges[-1]
            before = Counter(start.coverage) + Counter(found.outcomes[: last.span.start_line - start.line])
            entitles = last.ordinal == self._entitling
            source.resume = ResumePoint(
                last.span.start_line, last.span.start_byte, last.ordinal, dict(before), entitles
            )


def entitle(session: Session, note: Note) -> None:
    """Give the session a title unless it has one of a higher rank."""
    if note.rank >= session.title_rank:
        session.title, session.title_rank = one_line(note.value, _TITLE_LENGTH), note.rank


def title_of(prompt: str) -> str:
    """A prompt in one line without its pictures; of a plan that was agreed on, its heading: every plan begins alike."""
    heading = heading_of(plan_in(prompt) or "")
    words = heading[1] if heading else "\n".join(row for row in prompt.splitlines() if not row.startswith(_PICTURES))
    return one_line(words, _TITLE_LENGTH)


def project_of(cwd: str) -> str:
    """The name of the project a folder belongs to: its last part, or that of the repository a worktree is of."""
    parts = [part for part in re.split(r"[/\\]+", WORKTREE.sub("", cwd)) if part]
    return parts[-1] if parts else ""


def _folder_of(archived: str) -> str:
    return PurePosixPath(archived).parts[1]
