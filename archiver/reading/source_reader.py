"""Reader of a raw copy. It determines the new exchanges, facts about the session, and the outcome of each line."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ...core.conversation import UNINDEXED, Exchange, Fact, Kind, Milliseconds, Note, ResumePoint, Session
from ...core.home import project_name
from ...core.reports import IngestReport
from ...core.text import nfc
from ..formats import TranscriptFormat, is_extracted
from ..lines import REPEATED, Line, heading_of, one_line, plan_in, split
from ..redaction import Redactor
from ..store import Repetition, Source, SourceLine, Store
from ..store.exchange_table import StoredExchange
from ..store.source_table import DELETED
from ..store.sync_table import own_path
from .exchanges import link_late_results, mark_rewound
from .lineage import (
    Copies,
    Lineage,
    has_anonymous_prompts,
    less_detailed,
    origins,
    parent_of,
    remove_stored_twice,
    start_of,
)
from .parsing import Exclusion, ParsedLines, parse, remove_all, remove_excluded, remove_own_output

_TITLE_LENGTH = 80
_DIGEST = re.compile(r"[0-9a-f]{32,}")
_DIGEST_SHOWN = 8
_SHARED_FOLDERS = {"globalStorage", "sessions", "threads", "transcripts"}
"""Names of folders in which an agent stores the sessions of all projects."""
_PICTURES = ("[image", "[picture")
"""Prefixes of lines that replace a picture, such as `[image/png, 12 KB]`."""


class Suppression(Protocol):
    """Protocol for the lines that the user deleted. The object is false in a boolean context if nothing was deleted."""

    def __bool__(self) -> bool: ...

    def lines(self, path: Path, lines: Iterable[Line]) -> set[int]:
        """Return the numbers of deleted lines among `lines`, which are lines of the file at `path`."""
        ...

    def copies(self, exchanges: Sequence[Exchange], origins: Collection[str]) -> dict[int, int]:
        """Return the lines of a whole file that copy deleted lines, each with the tombstone of the deleted content.

        `origins` contains the IDs of the session and of its ancestors.
        """
        ...

    def hashes(self, paths: Sequence[Path], line: Line) -> set[int]:
        """Return the tombstones that recognise a line of one of the files in `paths`."""
        ...

    def record(self, record: str) -> int:
        """Return the tombstone that recognises a record."""
        ...

    def records(self, records: Mapping[str, int], *, erased: bool = False) -> set[int]:
        """Return the lines of deleted records. With `erased`, return only lines of records that were erased.

        `records` maps record IDs to lines.
        """
        ...


class IngestFilters(Struct, frozen=True):
    """Settings and lists that decide which content is not ingested or is redacted.

    These are Palaver's home, the redactor of secrets, the excluded folders and the deleted lines.
    """

    home: Path
    redactor: Redactor
    exclusion: Exclusion
    suppression: Suppression | None = None


class SourceReader:
    """Reader of the new lines of one source, the owner of their parsing: `parse`, `resolve`, then `save`.

    A process of the pool may parse a new file ahead. `resolve` parses again only if some lines belong to other sources,
    which the first parsing shows. It updates the line counts of the source, and the session from notes.
    """

    def __init__(
        self,
        transcript_format: TranscriptFormat,
        session: Session,
        source: Source,
        store: Store,
        filters: IngestFilters,
    ) -> None:
        self._format, self.session, self.source = transcript_format, session, source
        self._store, self._filters = store, filters
        self.parsed = ParsedLines(source.resume, source.resume.byte)
        self._title_exchange: int | None = None
        self.titles: list[Note] = []
        """Titles of other sessions. A title belongs to the session that contains the record `Note.about`."""
        self.has_deleted = False
        """True if the user deleted some of the new lines."""
        self.repetitions: list[Repetition] = []
        """Lines that repeat a record of another source."""
        self.later_sources: Collection[int] = ()
        """IDs of sources that repeat records of this source, but were read before it."""
        self.tombstones: set[tuple[int, int]] = set()
        """Tombstones of deleted content, each with a new tombstone for a line of this source that copies it."""
        self.moved: list[Repetition] = []
        """Lines of `later_sources` whose records belong to this source from now on."""
        self.less_detailed: Collection[int] = ()
        """IDs of files of the same session with exchanges that this container contains in more detail."""

    @property
    def first(self) -> int:
        """Ordinal of the first exchange that was read."""
        return self.parsed.start.ordinal

    @property
    def is_whole(self) -> bool:
        """True if reading began at the first line."""
        return self.parsed.start.line == 1

    @property
    def lines(self) -> int:
        """Number of lines that were read."""
        return len(self.parsed.outcomes)

    @property
    def exchanges(self) -> list[Exchange]:
        """Exchanges that were read, from ordinal `first` on."""
        return self.parsed.exchanges

    @property
    def records(self) -> dict[str, int]:
        """Line numbers of the new records, by record ID."""
        return self.parsed.records

    @property
    def subagents(self) -> list[tuple[str, str]]:
        """Sub-agents that were started, each as the ID of the call and the ID of the sub-agent's session."""
        return [(note.about, note.value) for note in self.parsed.notes if note.fact is Fact.SUBAGENT]

    def run(self, file: BinaryIO) -> None:
        """Read from the source's resume point to the end of the file."""
        self.parse(file)
        self.resolve(file)

    def parse(self, file: BinaryIO, ahead: ParsedLines | None = None) -> None:
        """Parse from the source's resume point to the end of the file, unless the lines were parsed `ahead`."""
        self.parsed = ahead or self._parse(file, self.source.resume)

    def resolve(self, file: BinaryIO) -> None:
        """Decide which of the parsed lines belong to this source, and describe the session by them."""
        places = self._store.sources.locate(self.records)
        stored = self._stored_exchanges()
        if self._reaches_back(places) or ((self._is_unindexed or stored) and not self.is_whole):
            self.parsed = self._parse(file, ResumePoint())
            places = self._store.sources.locate(self.records)
        self.session.parent_id = parent_of(self.session, self.parsed.notes)
        deleted = self._deleted_lines(file)
        copies = self._copies(places, deleted)
        self._note_later_sources(places, copies)
        earlier = self._earlier(places)
        if earlier or copies.lines:
            lines = self.records
            self.parsed = self._parse(file, self.parsed.start, earlier, copies.lines)
            repetitions = {Repetition(*place, lines[record]) for record, place in earlier.items()}
            self.repetitions = sorted(
                repetition for repetition in repetitions.union(copies.earlier) if repetition.first != self.source.id
            )
        calls_before = partial(self._store.exchanges.calls_before, self.source.id, self.parsed.start.line)
        self.parsed.exchanges = link_late_results(self.parsed.exchanges, calls_before)
        self._drop_deleted(deleted)
        twice = remove_stored_twice(self.parsed, stored)
        self._exclude()
        self._apply_notes()
        self._describe()
        self._count()
        if self._is_unindexed or self._only_repeats:
            self.repetitions = []
        self.repetitions += twice
        if twice and not self.exchanges:
            self.source.resume = ResumePoint()
        self._find_less_detailed()

    def _stored_exchanges(self) -> list[StoredExchange]:
        """Return the exchanges of this session in a database, if this source is a file without record IDs."""
        if self.source.is_contained or not has_anonymous_prompts(self.exchanges):
            return []
        number = self._store.sessions.find(self.session.agent, self.session.native_id, self.session.scope)
        return self._store.exchanges.of_session(number, contained=True) if number is not None else []

    def _find_less_detailed(self) -> None:
        """Find the files of the same session with exchanges that this container contains too."""
        if not self.source.is_contained:
            return
        number = self._store.sessions.find(self.session.agent, self.session.native_id, self.session.scope)
        if number is not None:
            files = self._store.exchanges.of_session(number, contained=False)
            self.less_detailed = less_detailed(self.exchanges, files)

    def _parse(
        self, file: BinaryIO, start: ResumePoint, repeated: Collection[str] = (), copied: Collection[int] = ()
    ) -> ParsedLines:
        return parse(self._format, self.session, start, file, self._filters.redactor, repeated, copied)

    def _clean(self, found: ParsedLines) -> None:
        remove_own_output(found, self.session, self._filters.home)
        remove_excluded(found, self.session, self._filters.exclusion)

    @property
    def _only_repeats(self) -> bool:
        """True if the source consists of deleted and repeated lines."""
        return self.source.coverage.keys() == {DELETED, REPEATED}

    @property
    def _is_unindexed(self) -> bool:
        return self.parsed.unindexed or UNINDEXED in self.session.links

    def _deleted_lines(self, file: BinaryIO) -> set[int]:
        """Return the lines that the user deleted, recognised by their content."""
        suppression, start, path = self._filters.suppression, self.parsed.start, self.source.path
        if not suppression:
            return set()
        deleted = suppression.lines(path, split(file, start_byte=start.byte, start_line=start.line))
        copies = dict[int, int]()
        if self.is_whole:
            copies = suppression.copies(self.parsed.with_rewinds(), origins(self._store, self.session))
        new = copies.keys() - deleted
        if new:
            records = [(suppression.record(record), line) for record, line in self.records.items()]
            hashes = [
                (tombstone, line.number) for line in split(file) for tombstone in suppression.hashes([path], line)
            ]
            self.tombstones = {(copies[line], each) for each, line in (*records, *hashes) if line in new}
        return deleted | copies.keys()

    def _drop_deleted(self, lines: Collection[int]) -> None:
        """Remove the lines that the user deleted: these lines, and the lines of deleted records."""
        parsed, suppression = self.parsed, self._filters.suppression
        if not suppression:
            return
        gone = {*lines, *suppression.records(parsed.records)}
        self.has_deleted = bool(gone)
        for index in range(self.lines):
            if parsed.start.line + index in gone:
                parsed.outcomes[index] = DELETED
        parsed.exchanges = _without(parsed.exchanges, gone)
        # Every line of a fork contains the ID of the parent session. The ID also applies to the remaining lines.
        parsed.notes = [note for note in parsed.notes if note.line not in gone or note.fact is Fact.PARENT]
        # Records that undo can restore keep their owner.
        erased = suppression.records(parsed.records, erased=True)
        parsed.records = {record: line for record, line in parsed.records.items() if line not in erased}

    def _exclude(self) -> None:
        """Remove Palaver's own output, and content that the user excluded."""
        self._clean(self.parsed)
        if self._is_unindexed:
            remove_all(self.parsed)
            self.session.links[UNINDEXED] = "yes"
            self.session.title, self.session.title_rank = "", -1
            self.source.resume = ResumePoint()

    def _copies(self, places: Mapping[str, SourceLine], deleted: Collection[int]) -> Copies:
        """Return the lines that this file and related files share by content."""
        parsed, session = self.parsed, self.session
        sharing = {source for source, _ in places.values()} - {self.source.id}
        gone = {*deleted, *(self._filters.suppression.records(parsed.records) if self._filters.suppression else ())}
        exchanges = _without(parsed.exchanges, gone) if gone else parsed.exchanges
        began = start_of(exchanges) if self.is_whole else None
        lineage = Lineage(self._store, session, self.source, sharing, began)
        if not lineage:
            return Copies()
        stored = replace(parsed, exchanges=[*exchanges], outcomes=[*parsed.outcomes])
        self._clean(stored)
        return lineage.copies(stored.exchanges, whole=self.is_whole)

    def _note_later_sources(self, places: Mapping[str, SourceLine], copies: Copies) -> None:
        """Determine the lines of later sources that belong to this source."""
        self.later_sources = copies.later
        others = {source for source, _ in places.values()} - {self.source.id}
        if others and not is_extracted(self.source.path):
            # A sub-agent that has its own transcript was also extracted from the transcript of its parent.
            self.later_sources = copies.later.union(self._store.sources.extracted(others))
        lines = {Repetition(*at, self.records[record]) for record, at in places.items() if at[0] in self.later_sources}
        self.moved = sorted({*lines, *copies.moved})

    def _earlier(self, places: Mapping[str, SourceLine]) -> dict[str, SourceLine]:
        """Return the new records that occurred earlier, each with its earlier source and line.

        Earlier means in another source, or in this source before the first line of this reading. For a record that is
        read again, the stored line may be wrong. For example, if a prompt was queued twice, its record may have moved
        to another line.
        """
        own = self.source.id, self.parsed.start.line
        return {
            record: place
            for record, place in places.items()
            if place[0] not in self.later_sources and (place[0] != own[0] or place < own)
        }

    def _reaches_back(self, places: Mapping[str, SourceLine]) -> bool:
        """Return whether a new line repeats a line before the resume point, or rewinds to such a line."""
        own = self.source.id, self.parsed.start.line
        return any(note.fact is Fact.REWOUND and not note.value for note in self.parsed.notes) or any(
            place[0] == own[0] and place < own for place in places.values()
        )

    def _apply_notes(self) -> None:
        """Update the session from the notes.

        The files of a session can be read in any order. Therefore, the folder and the title come from the file with the
        first exchange, and the branch and the version from the file with the last exchange.
        """
        session, times, notes = self.session, _times(self.exchanges), self.parsed.notes
        if times and session.started is not None and min(times) < session.started:
            session.cwd = next((note.value for note in notes if note.fact is Fact.CWD), session.cwd)
            if session.title_rank == 0:
                session.title_rank = -1
        if times and session.ended is not None and max(times) < session.ended:
            notes = [note for note in notes if note.fact not in {Fact.BRANCH, Fact.VERSION}]
        for note in notes:
            self._apply(note)

    def _apply(self, note: Note) -> None:
        session = self.session
        match note.fact:
            case Fact.TITLE if note.about:
                self.titles.append(note)
            case Fact.TITLE:
                apply_title(session, note)
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
                self.parsed.exchanges = [mark_rewound(exchange, first, note.line) for exchange in self.exchanges]
            case _:
                pass

    def _describe(self) -> None:
        """Set the dates and the project of the session. Use the first prompt as its title if it has no other title."""
        session = self.session
        times = _times(self.exchanges)
        session.started = min([*times, *([session.started] if session.started is not None else [])], default=None)
        session.ended = max([*times, *([session.ended] if session.ended is not None else [])], default=None)
        session.cwd = nfc(session.cwd)
        folder = PurePosixPath(own_path(self.source.archived)).parts[1]
        named = "" if folder in _SHARED_FOLDERS else folder
        session.project = project_name(session.cwd) or _without_digest(nfc(session.project or named or session.agent))
        if self.source.resume.sets_title and session.title_rank == 0:
            session.title, session.title_rank = "", -1
        if session.title_rank < 0:
            self._set_title()

    def _set_title(self) -> None:
        """Set the session's title to its first prompt."""
        for exchange in self.exchanges:
            prompts = (title_of(turn.text) for turn in exchange.turns if turn.kind is Kind.PROMPT)
            title = next(filter(None, prompts), "")
            if title:
                self.session.title, self.session.title_rank = title, 0
                self._title_exchange = exchange.ordinal
                return

    def _count(self) -> None:
        """Update the line counts of the source.

        Set its resume point to the start of the last exchange, because this exchange may still grow.
        """
        source, parsed, start = self.source, self.parsed, self.parsed.start
        source.lines = start.line - 1 + self.lines
        source.coverage = dict(Counter(start.coverage) + Counter(parsed.outcomes))
        source.parsed, source.pending = parsed.end, parsed.pending
        if self.exchanges:
            last = self.exchanges[-1]
            before = Counter(start.coverage) + Counter(parsed.outcomes[: last.span.start_line - start.line])
            sets_title = last.ordinal == self._title_exchange
            source.resume = ResumePoint(
                last.span.start_line, last.span.start_byte, last.ordinal, dict(before), sets_title
            )

    def save(self) -> bool:
        """Save the source, its session and its exchanges. Unchanged exchanges keep their keys, even in another source.

        Return whether other sources must be re-read because the owner of some lines changed.
        """
        number, before = self._store.sessions.save(self.session), self.source.session
        self.source.session = number
        number_of_source = self._store.sources.save(self.source)
        if self.tombstones:
            self._store.tombstones.extend(self.tombstones)
        if self.moved:
            self._store.sources.remove_records((repeated.first, repeated.line) for repeated in self.moved)
        self._store.sources.add_records(number_of_source, self.records)
        moved = self._store.exchanges.replace(number, number_of_source, self.first, self.exchanges, self.moved)
        if not self.first or all(exchange.ended != self.session.ended for exchange in self.exchanges):
            # The first or the last exchange may have disappeared, for example because a prompt was withdrawn.
            self._store.sessions.update_dates(number)
        if before is not None and before != number:
            self._store.exchanges.set_session(number_of_source, before, number)
            self._store.sessions.update_dates(before)
        self._store.repetitions.record(number_of_source, self.repetitions, replace=self.is_whole)
        self._store.subagent_calls.record(number_of_source, self.subagents, replace=self.is_whole)
        changed = {*self.later_sources, number_of_source} if moved else {*self.later_sources}
        if changed:
            self._store.sources.outdate(self.later_sources)
            self._store.repetitions.outdate(changed)
        self._store.sources.outdate(self.less_detailed)
        self._apply_titles()
        return bool(changed or self.less_detailed)

    def count_in(self, report: IngestReport) -> None:
        """Count this source in a report."""
        report.changed += 1
        report.lines += self.lines
        report.repeated += len(self.repetitions)
        report.exchanges += len(self.exchanges)

    def _apply_titles(self) -> None:
        """Set the titles of sessions. A title belongs to the session that contains the record `Note.about`.

        Titles with an unknown record are ignored.
        """
        places = self._store.sources.locate({title.about for title in self.titles})
        for title in self.titles:
            number = self._store.sources.session_of(places[title.about][0]) if title.about in places else None
            if number is not None:
                session = self._store.sessions.load(number)
                apply_title(session, title)
                self._store.sessions.save(session)


def stored_session(store: Store, session: Session) -> Session:
    """Return the stored version of a session, or the given session if it is new.

    If the stored version has no working folder, it gets the folder of the given session. If the parent session is
    marked as excluded from the index, the returned session gets the same mark.
    """
    number = store.sessions.find(session.agent, session.native_id, session.scope)
    if number is not None:
        stored = store.sessions.load(number)
        stored.cwd = stored.cwd or session.cwd
        session = stored
    return with_parent_mark(store, session)


def with_parent_mark(store: Store, session: Session) -> Session:
    """Mark a session as excluded from the index if its parent session is excluded. Return the session."""
    if store.sessions.is_unindexed(session.agent, session.parent_id):
        session.links[UNINDEXED] = "yes"
    return session


def _times(exchanges: Iterable[Exchange]) -> list[Milliseconds]:
    return [at for exchange in exchanges for at in (exchange.started, exchange.ended) if at is not None]


def _without(exchanges: Iterable[Exchange], lines: Collection[int]) -> list[Exchange]:
    """Return the exchanges without the turns on these lines, and without the exchanges that lose all turns."""
    kept = (
        replace(exchange, turns=tuple(turn for turn in exchange.turns if turn.line not in lines))
        for exchange in exchanges
    )
    return [each for each in kept if each.turns]


def apply_title(session: Session, note: Note) -> None:
    """Set the session's title, unless the current title has a higher rank."""
    if note.rank >= session.title_rank:
        session.title, session.title_rank = one_line(note.value, _TITLE_LENGTH), note.rank


def title_of(prompt: str) -> str:
    """Return a title for a prompt: the heading of its plan, or the prompt as one line without pictures."""
    heading = heading_of(plan_in(prompt) or "")
    words = heading[1] if heading else "\n".join(row for row in prompt.splitlines() if not row.startswith(_PICTURES))
    return one_line(words, _TITLE_LENGTH)


def _without_digest(name: str) -> str:
    """Return a name, or only the beginning of a name that is a digest."""
    return name[:_DIGEST_SHOWN] if _DIGEST.fullmatch(name) else name
