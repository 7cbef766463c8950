"""Selection of the exchanges, sessions, copies and lines that a deletion request names."""

import json
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from msgspec import Struct, field

from ...core import ids
from ...core.conversation import Session, SessionKind
from ...core.deletion import DeletionRequest, DeletionState
from ...core.errors import CopyDamaged, InvalidInput, InvalidLineRange, PathOutsideArchive
from ...core.project import is_in_project
from ..copies.exporter import encodable, resolved
from ..copies.raw import RawArchive
from ..files.lines import split
from ..store import Source, Store
from ..store.exchange_table import ExchangeOutline
from ..store.session_candidates import ambiguous_session, similar_sessions
from ..store.session_table import SHORTEST_ID
from ..store.source_table import DELETED
from .ownership import Ownership, has_files, reading_copy

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

    def include(self, each: ExchangeOutline) -> bool:
        if each.key in self.exchanges or each.session in self.sessions or each.source in self.sources:
            return True
        return not self.lines.get(each.source, set()).isdisjoint(range(each.start_line, each.end_line + 1))


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
        chosen = [each for each in self.outlines if each.session in fitting and _in_range(each, request)]
        if request.targets:
            chosen = [each for each in chosen if targets.include(each)]
        result = Selection(memories=targets.memories)
        if request.mentions:
            chosen = self._mentioning(chosen, fitting, targets, result)
        result.exchanges = {each.key: each for each in chosen}
        if not narrowed:
            result.sessions = targets.sessions & fitting if request.targets else fitting
            result.sources = {each for each in targets.sources if self.sources[each].session in fitting}
            result.lines = {source: set(lines) for source, lines in targets.lines.items()}
        self._complete(result)
        return result

    def _complete(self, selection: Selection) -> None:
        """Add the sessions whose exchanges are all selected, the sub-agents of selected sessions, and their content.

        If an earlier deletion removed some content of a session and can be undone, the session is not added for its
        exchanges.
        """
        incomplete = self._partly_deleted | {
            each.session for each in self.outlines if each.key not in selection.exchanges
        }
        selection.sessions |= {each.session for each in selection.exchanges.values()} - incomplete
        while new := self._subagents(selection.sessions) - selection.sessions:
            selection.sessions |= new
        selection.sources |= {number for number, each in self.sources.items() if each.session in selection.sessions}
        for each in self.outlines:
            if each.session in selection.sessions or each.source in selection.sources:
                selection.exchanges[each.key] = each
        for each in selection.exchanges.values():
            selection.lines.setdefault(each.source, set()).update(range(each.start_line, each.end_line + 1))
        for source, first, last in self._store.repetitions.in_files([*selection.exchanges]):
            selection.lines.setdefault(source, set()).update(range(first, last + 1))
        for number in selection.sources:
            selection.lines.pop(number, None)

    def _check_agents(self, names: Sequence[str]) -> None:
        known = {session.agent for session in self.sessions.values()}
        for name in names:
            if name not in known:
                hint = f"Archived agents: {', '.join(sorted(known))}." if known else "No session is archived."
                raise InvalidInput(f"Unknown agent: {name}", hint=hint)

    def _subagents(self, sessions: AbstractSet[int]) -> set[int]:
        parents = {(self.sessions[number].agent, self.sessions[number].native_id) for number in sessions}
        return {
            number
            for number, session in self.sessions.items()
            if session.kind is SessionKind.SUBAGENT and (session.agent, session.parent_id) in parents
        }

    def _targets(self, names: Sequence[str]) -> _Targets:
        found = _Targets()
        for name in names:
            if not (self._add_item(name, found) or self._add_session(name, found) or self._add_path(name, found)):
                hint = _DOCUMENTS if ids.key(name, "chunk") is not None else _HINT
                near = similar_sessions(self._store.sessions, encodable(name))
                raise InvalidInput(f"No match in the archive for {name}", hint=near + hint)
        return found

    def _add_item(self, name: str, found: _Targets) -> bool:
        key = ids.key(name)
        item = self._store.items.load([key]).get(key) if key is not None else None
        if key is None or item is None or ids.canonical(name) != ids.PREFIXES.get(item.kind, "\0") + str(key):
            return False
        (found.memories if item.kind == "memory" else found.exchanges).add(item.exchange)
        return True

    def _add_session(self, name: str, found: _Targets) -> bool:
        sessions = self._sessions_called(name)
        found.sessions |= sessions
        return bool(sessions)

    def _sessions_called(self, name: str) -> set[int]:
        """Return the sessions whose ID is `name` or, if there are none, the sessions whose ID begins with `name`."""
        exact = {number for number, session in self.sessions.items() if session.is_called(name)}
        prefixed = {number for number, each in self.sessions.items() if each.native_id.startswith(name)}
        found = exact or (prefixed if len(name) >= SHORTEST_ID else set[int]())
        if len({(self.sessions[number].native_id, self.sessions[number].scope) for number in found}) > 1:
            raise ambiguous_session(self._store.sessions, name)
        return found

    def _add_path(self, name: str, found: _Targets) -> bool:
        if (source := self._source_at(name)) is not None:
            found.sources.add(source)
            return True
        path, _, span = name.rpartition(":")
        first, _, last = span.partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not last)):
            return False
        source = self._source_at(path)
        if source is None and (source := self._only_source(self._sessions_called(path), path)) is None:
            return False
        lines = _line_range(int(first), int(last or first), self.sources[source].lines)
        found.lines.setdefault(source, set()).update(lines)
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
        request, allowed, found = self._request, {each.key for each in chosen}, dict[int, ExchangeOutline]()
        by_source: dict[int, list[ExchangeOutline]] = {}
        for each in sorted(self.outlines, key=lambda each: each.start_line):
            by_source.setdefault(each.source, []).append(each)
        for number, source in self.sources.items():
            own = by_source.get(number, [])
            named = not request.targets or number in targets.sources or source.session in targets.sessions
            if source.session not in fitting or not (named or allowed & {each.key for each in own}):
                continue
            for line in self._lines_with_text(source, bool(own), result):
                place = bisect_right(own, line, key=lambda each: each.start_line) - 1
                if place >= 0 and line <= own[place].end_line:
                    found |= {own[place].key: own[place]} if own[place].key in allowed else {}
                elif named and request.since is None and request.until is None:
                    result.lines.setdefault(number, set()).add(line)
        return list(found.values())

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
    wanted = [form.lower().encode("utf-8", "replace") for form in forms]
    with reading_copy(raw, source.archived) as file:
        for line in split(file):
            data = line.data.lower() if line.data.isascii() else line.data.decode("utf-8", "replace").lower().encode()
            if any(form in data for form in wanted):
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
