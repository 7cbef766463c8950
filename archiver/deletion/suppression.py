"""Suppression list, which recognises deleted lines by keyed hashes, and selection of the lines to delete.

- A line with an ID or a time is recognised by its content, in any file.
- Any other line is recognised only in its original file or copy, because two users can write the same text.
- A copy of a whole exchange, or of its beginning, is recognised by its content and position in related sessions, even
  if its lines have other IDs and times. The hashes of its own lines are then added to the list.
- A record is recognised by its ID, even if a fork or resumed session repeats it on a different line.
- A JSON line also has a keyed hash of its canonical form, so it stays deleted if an agent reformats the file.

A line belongs to the session that contained it first. Deleting a session deletes its own lines in every copy, and
keeps the lines that it repeats from other sessions. A fast filter finds the copies that can repeat deleted lines, so
that a preview hashes the lines of few copies.
"""

import hashlib
import io
import json
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from itertools import islice, takewhile
from pathlib import Path
from typing import BinaryIO, Final

import orjson
from msgspec import Struct, field

from ...core import ids
from ...core.conversation import Exchange, ResumePoint, Session, SessionKind
from ...core.deletion import DeletionRequest, DeletionState
from ...core.errors import CopyDamaged, InvalidInput, InvalidLineRange, PathOutsideArchive
from ...core.home import is_in_project
from ..compressed_file import CompressedFile
from ..copies.exporter import encodable, resolved
from ..copies.raw_copy import COMPRESSED_SUFFIX, Copy, RawArchive, matches
from ..formats import ExtractingFormat
from ..formats.registry import by_agent
from ..formats.transcript_format import SkipReason
from ..lines import REPEATED, Line, head, is_blanked, opened, split
from ..reading.lineage import Beginning, beginnings
from ..reading.parsing import ParsedLines, parse
from ..redaction import Redactor
from ..store import Source, Store
from ..store.exchange_table import ExchangeOutline
from ..store.session_table import SHORTEST_ID, ambiguous_session, similar_sessions
from ..store.source_table import DELETED

IDENTIFYING: Final = re.compile(rb"\d{10,}|\d\d:\d\d:\d\d|[0-9a-f]{8}-[0-9a-f]{4}-")
"""Pattern for an ID or a time, which makes a line unique."""
_BATCH: Final = 5_000
"""Number of lines whose hashes are looked up with one query."""


class SuppressionList:
    """List of the deleted lines of one archive.

    With `erased`, it contains only the lines that must also be erased from the copies.
    """

    def __init__(self, store: Store, key: bytes, *, erased: bool = False) -> None:
        """Load the tombstones. Raises `KeyLost` if another key was used for them."""
        store.tombstones.check_key(key)
        self._store, self._key, self._erased = store, key, erased
        self._archive = store.home.archive

    def __bool__(self) -> bool:
        return self._store.tombstones.has_deletions(erased=self._erased)

    def hashes(self, paths: Sequence[Path], line: Line) -> set[int]:
        """Return the keyed hashes of a line.

        A line without an ID or a time gets one hash for each file in `paths`, computed from the path and the line
        number. A record on several lines also gets the hashes of its first and its last line alone, which earlier
        versions stored. One of these lines contains the ID or the time of the record.
        """
        data = line.data + b"\n"
        if line.line_count > 1:
            ends = line.data.partition(b"\n")[0], line.data.rpartition(b"\n")[2]
            alone = (
                line._replace(number=number, data=end, line_count=1)
                for number, end in zip((line.number, line.last), ends, strict=True)
            )
            return {self._hash(b"line", data)}.union(*(self.hashes(paths, each) for each in alone))
        if IDENTIFYING.search(data):
            return {self._hash(b"line", data), self._hash(b"line", _canonical(data))}
        return {self._place(path, line.number) for path in paths}

    def record(self, record: str) -> int:
        """Return the keyed hash of a record ID."""
        return self._hash(b"record", record.encode("utf-8", "surrogatepass"))

    def copies(self, exchanges: Sequence[Exchange], origins: Collection[str]) -> dict[int, int]:
        """Return the lines of a whole file that copy deleted lines, each with the keyed hash of the deleted content.

        `origins` contains the IDs of the session and of its ancestors.
        """
        contents = self.contents(exchanges, origins)
        known = self._store.tombstones.matching({content for content, _ in contents}, erased=self._erased)
        return {line: content for content, lines in contents if content in known for line in lines}

    def contents(self, exchanges: Sequence[Exchange], origins: Collection[str]) -> list[tuple[int, set[int]]]:
        """Return the keyed hashes of the beginnings of the exchanges of a whole file, each with its lines."""
        return [(content, each.lines) for each in beginnings(exchanges) for content in self._content(each, origins)]

    def _content(self, beginning: Beginning, origins: Iterable[str]) -> set[int]:
        """Return the keyed hashes of the beginning of an exchange: one for each session ID, and one for its time.

        They recognise copies with other IDs. Unrelated sessions can contain the same text, but not at the same time.
        """
        times = [] if beginning.at is None else [b"\0%d" % beginning.at]
        names = [name.encode("utf-8", "surrogatepass") for name in origins]
        return {self._hash(b"content", beginning.digest + scope) for scope in (*names, *times)}

    def file(self, path: Path) -> int:
        """Return the keyed hash of a file path."""
        return self._hash(b"file", os.fsencode(path))

    def lines(self, path: Path, lines: Iterable[Line], *, blanked: bool = True) -> set[int]:
        """Return the numbers of the deleted lines among these lines of a file.

        Lines that were erased from a copy are included, unless `blanked` is false.
        """
        deleted: set[int] = set()
        remaining = iter(lines)
        while batch := list(islice(remaining, _BATCH)):
            hashes = [(line, self.hashes([path], line)) for line in batch]
            tombstones = self._store.tombstones.matching(
                set[int]().union(*(its for _, its in hashes)), erased=self._erased
            )
            deleted |= {number for line, its in hashes if its & tombstones for number in line.numbers}
            deleted |= {line.number for line in batch if blanked and is_blanked(line.data)}
        return deleted

    def records(self, records: Mapping[str, int], *, erased: bool = False) -> set[int]:
        """Return the lines of deleted records, or only of erased records. `records` maps record IDs to lines."""
        hashes = {self.record(record): line for record, line in records.items()}
        return {
            hashes[line_hash] for line_hash in self._store.tombstones.matching(hashes, erased=self._erased or erased)
        }

    def without(self, path: Path, rows: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the lines of a file that are not deleted, with their line endings."""
        if not self:
            yield from rows
            return
        for row in rows:
            line = Line(0, 0, len(row), row.removesuffix(b"\n").removesuffix(b"\r"), complete=True, oversized=False)
            if not self._store.tombstones.matching(self.hashes([path], line), erased=self._erased):
                yield row

    def _place(self, path: Path, number: int) -> int:
        # The path is relative to the archive, so that moving the archive changes nothing.
        path = path.relative_to(self._archive) if path.is_relative_to(self._archive) else path
        return self._hash(b"place", os.fsencode(path) + b"\0%d" % number)

    def _hash(self, kind: bytes, data: bytes) -> int:
        digest = hashlib.blake2b(data, digest_size=8, key=self._key, person=kind).digest()
        return int.from_bytes(digest, "big", signed=True)


def _canonical(line: bytes) -> bytes:
    """Return a JSON line with sorted keys and without whitespace. Return any other line unchanged."""
    try:
        return orjson.dumps(orjson.loads(line), option=orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE)
    except ValueError:
        return line


_SHARED: Final = {REPEATED, DELETED}
"""Outcomes (see `Source.coverage`) of lines that may repeat lines of another copy."""


class Ownership:
    """Reader of copies that determines which of their lines belong to other sessions."""

    def __init__(self, store: Store, raw: RawArchive, key: bytes, *, originals: bool = False) -> None:
        """Prepare to read the copies, or with `originals` the agents' own files."""
        self._store, self._raw, self._key, self._originals = store, raw, key, originals
        self._suppression = SuppressionList(store, key)

    def repeated(self, source: Source, stays: Callable[[int, int], bool]) -> set[int]:
        """Return the lines of a copy that repeat a remaining line of another copy, or an earlier line of the same copy.

        `stays` receives a source ID and a line, and returns whether this line remains after the deletion. A line with a
        record ID is compared by this ID. Any other line is compared by its content with the copies that own a record in
        this copy. Every line is also compared with the earlier lines of its own copy.

        Raises:
            CopyDamaged: The copy cannot be read.
        """
        if not repeats_others(source):
            return set()
        records = self.records(source)
        found, owners = set[int](), set[int]()
        for record, (owner, line) in self._store.sources.locate(records).items():
            if (owner, line) != (source.id, records[record]) and stays(owner, line):
                found.add(records[record])
                owners.add(owner)
        theirs = set[int]()
        for owner in owners - {source.id}:
            with suppress(CopyDamaged):
                theirs |= {
                    line_hash for line, line_hash in self.hashes(self._store.sources.load(owner)) if stays(owner, line)
                }
        with_record, first = set(records.values()), dict[int, int]()
        for line, line_hash in self.hashes(source):
            earlier = first.setdefault(line_hash, line)
            if (line not in with_record and line_hash in theirs) or (
                earlier != line and stays(source.id or 0, earlier)
            ):
                found.add(line)
        return found

    def records(self, source: Source) -> dict[str, int]:
        """Return the line numbers of a copy's records by record ID, if the copy repeats other copies.

        Return an empty dictionary for any other copy.
        """
        if not repeats_others(source):
            return {}
        with self.reading(source) as file:
            return parse_copy(file, source.agent, source.path, self._key).records

    def extracted_records(self, source: Source) -> dict[str, int]:
        """Return the line numbers of the records of sub-agents in a copy, by record ID. Raises `CopyDamaged`."""
        if not has_subagents(source):
            return {}
        with self.reading(source) as file:
            return extracted_records(file, source.agent)

    def exchanges(self, source: Source) -> list[Exchange]:
        """Return the exchanges of a copy, including lines that repeat other copies. Raises `CopyDamaged`."""
        with self.reading(source) as file:
            return parse_copy(file, source.agent, source.path, self._key).with_rewinds()

    def hashes(self, source: Source, *, everywhere: bool = False) -> Iterator[tuple[int, int]]:
        """Yield pairs of a line number of a copy and a keyed hash of that line. A line can have several hashes.

        A line without an ID or a time is identified by its number in the agent's file. If `everywhere` is true, such a
        line also gets a hash for its number in the copy.

        Raises:
            CopyDamaged: The copy cannot be read.
        """
        paths = [source.path, self._raw.root / source.archived] if everywhere else [source.path]
        with self.reading(source) as file:
            for line in split(file):
                for line_hash in self._suppression.hashes(paths, line):
                    yield from ((number, line_hash) for number in line.numbers)

    def salvaged_hashes(self, source: Source) -> set[int]:
        """Return the keyed hashes of the readable lines of a damaged or missing copy.

        The result is empty if the copy repeats other copies, because ownership of its lines cannot be determined.
        """
        copy, found = Copy(self._raw.root, source.archived), set[int]()
        for form in (copy.path, copy.compressed_path, *copy.damaged_files()) if not repeats_others(source) else ():
            with suppress(OSError, CopyDamaged):
                if COMPRESSED_SUFFIX in form.name:
                    with CompressedFile(form) as compressed:
                        data = compressed.intact_lines()
                else:
                    data = form.read_bytes()
                for line in split(io.BytesIO(data)):
                    found |= self._suppression.hashes([source.path], line)
        return found

    def deleted(self, source: Source) -> set[int]:
        """Return the lines of a copy that are already deleted. Raises `CopyDamaged`."""
        if not repeats_others(source):
            return set()
        with self.reading(source) as file:
            return self._suppression.lines(source.path, split(file)) | self._suppression.records(self.records(source))

    @contextmanager
    def reading(self, source: Source) -> Generator[BinaryIO]:
        """Open the content of a copy, or of the agent's own file. Opening or reading it can raise `CopyDamaged`."""
        with reading_original(source) if self._originals else reading_copy(self._raw, source.archived) as file:
            yield file


def repeats_others(source: Source) -> bool:
    """Return whether a copy has lines that repeat other copies, or deleted lines that may have repeated them."""
    return not source.coverage.keys().isdisjoint(_SHARED)


def has_subagents(source: Source) -> bool:
    """Return whether a copy contains messages of sub-agents, which may have a transcript of their own as well."""
    return SkipReason.SUBAGENT in source.coverage


def has_files(raw: RawArchive, archived: str) -> bool:
    """Return whether any file of a copy exists, even a damaged file."""
    copy = Copy(raw.root, archived)
    return copy.exists() or bool(copy.damaged_files())


@contextmanager
def reading_copy(raw: RawArchive, archived: str) -> Generator[BinaryIO]:
    """Open the content of a copy. Opening or reading raises `CopyDamaged` if the copy is damaged or missing."""
    try:
        file = raw.open(archived)
    except FileNotFoundError:
        copy = Copy(raw.root, archived)
        left = ", ".join(path.name for path in copy.damaged_files())
        reason = f"the copy is missing, and only {left} exists" if left else "the copy is missing"
        hint = "Restore it from a backup, or delete the whole session, which needs no copy."
        raise CopyDamaged(copy.path, reason, hint=hint) from None
    with file:
        yield file


@contextmanager
def reading_original(source: Source) -> Generator[BinaryIO]:
    """Open the archived part of an agent's own file. Raises `CopyDamaged` if the file is missing or has changed."""
    lines = list[bytes]()
    with suppress(OSError), source.path.open("rb") as file:
        if matches(source, file):
            with opened(source.path) as content:
                lines = [
                    line.data + b"\n" for line in takewhile(lambda line: line.last <= source.lines, split(content))
                ]
    if not lines:
        raise CopyDamaged(source.path, "the file differs from the archived copy")
    yield io.BytesIO(b"".join(lines))


def parse_copy(file: BinaryIO, agent: str, path: Path, key: bytes) -> ParsedLines:
    """Parse the content of a copy of the file at `path`, including lines that repeat other copies."""
    transcript_format = by_agent(agent)
    session = transcript_format.identify(path, head(file))
    return parse(transcript_format, session, ResumePoint(), file, Redactor(key))


def extracted_records(file: BinaryIO, agent: str) -> dict[str, int]:
    """Return the line numbers of the records of sub-agents in the content of a copy, by record ID."""
    known = by_agent(agent)
    return known.extracted_records(split(file)) if isinstance(known, ExtractingFormat) else {}


_DOCUMENTS: Final = "It is part of an indexed file. Run `palaver documents remove FILE` to remove the file."
_HINT: Final = (
    "Give an ID from `palaver search` (obs-24, ex-12 or mem_7), a session ID or its first characters, or a path, "
    "each with or without :FIRST-LAST. Or use --project, --agent, --since, --until or --mentions."
)


class Selection(Struct):
    """Content to delete.

    Attributes:
        exchanges: Outlines of the exchanges to delete, by key.
        sessions: Sessions that are deleted completely.
        sources: Sources that are deleted completely.
        lines: Lines of other sources, including the lines of the exchanges.
        memories: Keys of the requested memories.
        unreadable: Copies that could not be searched for a text.
    """

    exchanges: dict[int, ExchangeOutline] = field(default_factory=dict[int, ExchangeOutline])
    sessions: set[int] = field(default_factory=set[int])
    sources: set[int] = field(default_factory=set[int])
    lines: dict[int, set[int]] = field(default_factory=dict[int, set[int]])
    memories: set[int] = field(default_factory=set[int])
    unreadable: set[str] = field(default_factory=set[str])

    def has(self, source: int, line: int) -> bool:
        """Return whether a line of a source is selected."""
        return source in self.sources or line in self.lines.get(source, ())


class _Targets(Struct):
    """Content named by the targets of a request, such as a session ID or `<path>:<first line>-<last line>`."""

    exchanges: set[int] = field(default_factory=set[int])
    sessions: set[int] = field(default_factory=set[int])
    sources: set[int] = field(default_factory=set[int])
    lines: dict[int, set[int]] = field(default_factory=dict[int, set[int]])
    memories: set[int] = field(default_factory=set[int])

    def include(self, exchange: ExchangeOutline) -> bool:
        if exchange.key in self.exchanges or exchange.session in self.sessions or exchange.source in self.sources:
            return True
        return not self.lines.get(exchange.source, set()).isdisjoint(range(exchange.start_line, exchange.end_line + 1))


class Selector:
    """Selector of stored content for one deletion request.

    Content that was deleted before is selected only for an erasure.
    """

    def __init__(self, store: Store, raw: RawArchive, request: DeletionRequest) -> None:
        self._store, self._raw, self._request = store, raw, request
        self._ownership = Ownership(store, raw, store.home.key())
        every = {source.id: source for source in store.sources.all() if source.id is not None}
        self.sources = {
            number: each for number, each in every.items() if request.erase or each.coverage.keys() != {DELETED}
        }
        with_sources = {source.session for source in self.sources.values()}
        self.sessions = {number: each for number, each in store.sessions.all().items() if number in with_sources}
        self.outlines = store.exchanges.outlines()
        undoable = any(each.state is DeletionState.KEPT for each in store.tombstones.all())
        self._partly_deleted = {each.session for each in every.values() if undoable and DELETED in each.coverage}

    def select(self) -> Selection:
        """Return the selected content. Raises `InvalidInput` for an unknown or ambiguous target or agent."""
        request = self._request
        if request.selects_everything:
            raise InvalidInput("No content to delete was given", hint=_HINT)
        self._check_agents(request.agents)
        targets = self._targets(request.targets)
        fitting = {number for number, session in self.sessions.items() if _fits(session, request)}
        narrowed = request.since is not None or request.until is not None or bool(request.mentions)
        chosen = [
            exchange for exchange in self.outlines if exchange.session in fitting and _in_range(exchange, request)
        ]
        if request.targets:
            chosen = [exchange for exchange in chosen if targets.include(exchange)]
        result = Selection(memories=targets.memories)
        if request.mentions:
            chosen = self._mentioning(chosen, fitting, targets, result)
        result.exchanges = {exchange.key: exchange for exchange in chosen}
        if not narrowed:
            result.sessions = targets.sessions & fitting if request.targets else fitting
            result.sources = {number for number in targets.sources if self.sources[number].session in fitting}
            result.lines = {source: set(lines) for source, lines in targets.lines.items()}
        self._complete(result)
        return result

    def _complete(self, selection: Selection) -> None:
        """Add the sessions whose exchanges are all selected, the sub-agents of selected sessions, and their content.

        If an earlier deletion removed some content of a session and can be undone, the session is not added for its
        exchanges.
        """
        incomplete = self._partly_deleted | {
            exchange.session for exchange in self.outlines if exchange.key not in selection.exchanges
        }
        selection.sessions |= {exchange.session for exchange in selection.exchanges.values()} - incomplete
        while new := self._subagents(selection.sessions) - selection.sessions:
            selection.sessions |= new
        selection.sources |= {
            number for number, exchange in self.sources.items() if exchange.session in selection.sessions
        }
        for exchange in self.outlines:
            if exchange.session in selection.sessions or exchange.source in selection.sources:
                selection.exchanges[exchange.key] = exchange
        for exchange in selection.exchanges.values():
            selection.lines.setdefault(exchange.source, set()).update(range(exchange.start_line, exchange.end_line + 1))
        for source, first, last in self._store.repetitions.in_files([*selection.exchanges]):
            selection.lines.setdefault(source, set()).update(range(first, last + 1))
        for number in selection.sources:
            selection.lines.pop(number, None)

    def _check_agents(self, names: Sequence[str]) -> None:
        agents = {session.agent for session in self.sessions.values()}
        for name in names:
            if name not in agents:
                hint = f"Archived agents: {', '.join(sorted(agents))}." if agents else "No session is archived."
                raise InvalidInput(f"Unknown agent: {name}", hint=hint)

    def _subagents(self, sessions: AbstractSet[int]) -> set[int]:
        parents = {(self.sessions[number].agent, self.sessions[number].native_id) for number in sessions}
        return {
            number
            for number, session in self.sessions.items()
            if session.kind is SessionKind.SUBAGENT and (session.agent, session.parent_id) in parents
        }

    def _targets(self, names: Sequence[str]) -> _Targets:
        targets = _Targets()
        for name in names:
            if not (self._add_item(name, targets) or self._add_session(name, targets) or self._add_path(name, targets)):
                hint = _DOCUMENTS if ids.key(name, "chunk") is not None else _HINT
                suggestion = similar_sessions(self._store.sessions, encodable(name))
                raise InvalidInput(f"No match in the archive for {name}", hint=suggestion + hint)
        return targets

    def _add_item(self, name: str, targets: _Targets) -> bool:
        key = ids.key(name)
        item = self._store.items.load([key]).get(key) if key is not None else None
        if key is None or item is None or ids.canonical(name) != ids.PREFIXES.get(item.kind, "\0") + str(key):
            return False
        (targets.memories if item.kind == "memory" else targets.exchanges).add(item.exchange)
        return True

    def _add_session(self, name: str, targets: _Targets) -> bool:
        sessions = self._sessions_called(name)
        targets.sessions |= sessions
        return bool(sessions)

    def _sessions_called(self, name: str) -> set[int]:
        """Return the sessions whose ID is `name` or, if there are none, the sessions whose ID begins with `name`."""
        exact = {number for number, session in self.sessions.items() if session.is_called(name)}
        prefixed = {number for number, session in self.sessions.items() if session.native_id.startswith(name)}
        matches = exact or (prefixed if len(name) >= SHORTEST_ID else set[int]())
        if len({(self.sessions[number].native_id, self.sessions[number].scope) for number in matches}) > 1:
            raise ambiguous_session(self._store.sessions, name)
        return matches

    def _add_path(self, name: str, targets: _Targets) -> bool:
        if (source := self._source_at(name)) is not None:
            targets.sources.add(source)
            return True
        path, _, span = name.rpartition(":")
        first, _, last = span.partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not last)):
            return False
        source = self._source_at(path)
        if source is None and (source := self._only_source(self._sessions_called(path), path)) is None:
            return False
        lines = _line_range(int(first), int(last or first), self.sources[source].lines)
        targets.lines.setdefault(source, set()).update(lines)
        return True

    def _only_source(self, sessions: AbstractSet[int], name: str) -> int | None:
        """Return the only source of these sessions. Raises `InvalidInput` if several sources exist."""
        sources = [number for number, source in self.sources.items() if source.session in sessions]
        if len(sources) > 1:
            raise InvalidInput(f"Session {name} has {len(sources)} files", hint="Give the path of one file.")
        return sources[0] if sources else None

    def _source_at(self, path: str) -> int | None:
        """Return the ID of the source whose raw copy or whose original file has this path."""
        try:
            source = self._store.sources.by_archived(self._raw.relative(path))
        except PathOutsideArchive:
            source = None
        if source is None and path:
            source = self._store.sources.at(resolved(path))
        return source.id if source is not None and source.id in self.sources else None

    def _mentioning(
        self, chosen: Sequence[ExchangeOutline], fitting: Collection[int], targets: _Targets, result: Selection
    ) -> list[ExchangeOutline]:
        """Return the chosen exchanges that contain the text of the request.

        Lines with the text that belong to no exchange are added to `result`.
        """
        request, allowed, mentioning = (
            self._request,
            {exchange.key for exchange in chosen},
            dict[int, ExchangeOutline](),
        )
        by_source: dict[int, list[ExchangeOutline]] = {}
        for exchange in sorted(self.outlines, key=lambda exchange: exchange.start_line):
            by_source.setdefault(exchange.source, []).append(exchange)
        for number, source in self.sources.items():
            own = by_source.get(number, [])
            named = not request.targets or number in targets.sources or source.session in targets.sessions
            if source.session not in fitting or not (named or allowed & {exchange.key for exchange in own}):
                continue
            for line in self._lines_with_text(source, bool(own), result):
                index = bisect_right(own, line, key=lambda exchange: exchange.start_line) - 1
                if index >= 0 and line <= own[index].end_line:
                    mentioning |= {own[index].key: own[index]} if own[index].key in allowed else {}
                elif named and request.since is None and request.until is None:
                    result.lines.setdefault(number, set()).add(line)
        return list(mentioning.values())

    def _lines_with_text(self, source: Source, has_exchanges: bool, result: Selection) -> set[int]:
        """Return the lines of a copy that contain the text and do not repeat lines of another session.

        Lines that were deleted before are included only for an erasure.
        """
        try:
            lines = set(lines_with(self._raw, source, self._request.mentions))
            if lines:
                lines -= self._ownership.repeated(source, lambda _owner, _line: True)
            if lines and not self._request.erase:
                lines -= self._ownership.deleted(source)
        except CopyDamaged:
            result.unreadable |= {source.archived} if has_exchanges or has_files(self._raw, source.archived) else set()
            return set()
        return lines


def lines_with(raw: RawArchive, source: Source, text: str) -> Iterator[int]:
    """Yield the lines that contain a text, ignoring case. Raises `CopyDamaged`.

    JSON-escaped forms of the text are found too.
    """
    forms = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    lowered = [form.lower().encode("utf-8", "replace") for form in forms]
    with reading_copy(raw, source.archived) as file:
        for line in split(file):
            data = line.data.lower() if line.data.isascii() else line.data.decode("utf-8", "replace").lower().encode()
            if any(form in data for form in lowered):
                yield line.number


def _line_range(first: int, last: int, most: int) -> range:
    if first < 1:
        raise InvalidLineRange("lines begin at 1")
    if last < first:
        raise InvalidLineRange(f"the last line {last} is before the first line {first}")
    if first > most:
        raise InvalidLineRange(f"line {first} is past the last line, which is {most}")
    return range(first, min(last, most) + 1)


def _fits(session: Session, request: DeletionRequest) -> bool:
    if request.agents and session.agent not in request.agents:
        return False
    return not request.projects or is_in_project(request.projects, session.project, session.cwd)


def _in_range(outline: ExchangeOutline, request: DeletionRequest) -> bool:
    if request.since is None and request.until is None:
        return True
    at = outline.at
    return at is not None and (request.since or at) <= at and (request.until is None or at < request.until)


_HOUR: Final = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:")
"""Pattern for the date and the hour of a time. The lines of a session have few different hours."""
_TEXTS_MAX: Final = 48
"""Maximum number of texts to search for. Searching for more takes longer than hashing all lines."""
_SHORTEST: Final = 8
"""Minimum number of characters of a session ID that is searched for."""
_PIECE: Final = 1 << 20
_LONGEST: Final = 256
"""Maximum number of characters of a text to search for."""


class RepeatFilter:
    """Set of short texts that occur in every line that repeats one of the added lines.

    Equal lines contain the same IDs and times, even if an agent wrote their JSON with another order of keys.
    """

    def __init__(self) -> None:
        self._texts, self._paths = set[bytes](), set[Path]()
        self.excludes_nothing = False
        """True if some lines could not be added, so that any copy can repeat them."""

    def add(self, paths: Iterable[Path], session_id: str, lines: Iterable[Line]) -> None:
        """Add the selected lines of a file that has these paths."""
        self._paths.update(paths)
        native_id = session_id.encode(errors="replace")
        if not _SHORTEST <= len(native_id) <= _LONGEST:
            native_id = b""
        for line in lines:
            if native_id and native_id in line.data:
                self._texts.add(native_id)
            elif match := _HOUR.search(line.data) or IDENTIFYING.search(line.data):
                self._texts.add(match[0][:_LONGEST])

    def may_match(self, path: Path, file: BinaryIO) -> bool:
        """Return whether a copy of an agent's file can repeat an added line.

        Lines without an ID or a time are recognised by the path of the agent's file.
        """
        if self.excludes_nothing or path in self._paths or len(self._texts) > _TEXTS_MAX:
            return True
        tail = b""
        while piece := file.read(_PIECE):
            data = tail + piece
            if any(text in data for text in self._texts):
                return True
            tail = data[-_LONGEST:]
        return False
