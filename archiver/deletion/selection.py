"""Selection: which exchanges, sessions, copies and lines somebody means who wants them forgotten."""

import json
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path, PurePath
from typing import Final

from msgspec import Struct, field

from ...core import ids
from ...core.conversation import Session, SessionKind
from ...core.deletion import DeletionRequest, Widened
from ...core.errors import CopyDamaged, InvalidInput, InvalidLineRange, PathOutsideArchive
from ...core.home import Home
from ..copies.raw import RawArchive
from ..files.lines import split
from ..store import Source, State, Store
from ..store.exchange_table import ExchangeOutline
from ..store.source_table import DELETED
from .ownership import TELLING, Ownership, is_left, reading
from .suppression import SuppressionList

_SHORTEST: Final = 6
"""Characters of a session's id that name it, when no other begins so."""
_DOCUMENTS = "It is part of an indexed file: `palaver documents forget FILE` removes that."
_HINT = (
    "Give an id that `palaver search` printed (obs-24, ex-12 or mem_7), or a session's id, its first 6 characters or "
    "more, or a path, each with or without :FIRST-LAST, or --project, --agent, --since, --until, --mentions."
)


class Selection(Struct):
    """What goes. `lines` are those of sources of which others stay; the lines of exchanges are among them.

    `sessions` and `sources` go as a whole; `memories` were named by their keys. `widened` are exchanges
    that go though only a part of them was named, `unread` copies of which nobody knows whether they mention a text.
    """

    exchanges: dict[int, ExchangeOutline] = field(default_factory=dict[int, ExchangeOutline])
    sessions: set[int] = field(default_factory=set[int])
    sources: set[int] = field(default_factory=set[int])
    lines: dict[int, set[int]] = field(default_factory=dict[int, set[int]])
    memories: set[int] = field(default_factory=set[int])
    widened: list[Widened] = field(default_factory=list[Widened])
    unread: set[str] = field(default_factory=set[str])

    def holds(self, source: int, line: int) -> bool:
        """Whether a line goes."""
        return source in self.sources or line in self.lines.get(source, ())


class _Named(Struct):
    """What targets resolve to."""

    exchanges: set[int] = field(default_factory=set[int])
    sessions: set[int] = field(default_factory=set[int])
    sources: set[int] = field(default_factory=set[int])
    spans: dict[int, list[range]] = field(default_factory=dict[int, list[range]])
    memories: set[int] = field(default_factory=set[int])
    parts: dict[str, int | tuple[int, range]] = field(default_factory=dict[str, "int | tuple[int, range]"])
    """Targets that may name less than goes: the exchange of an observation, or lines of a source."""

    def covers(self, outline: ExchangeOutline) -> bool:
        if outline.key in self.exchanges or outline.session in self.sessions or outline.source in self.sources:
            return True
        spans = self.spans.get(outline.source, ())
        return any(outline.start_line < span.stop and span.start <= outline.end_line for span in spans)


class Selector:
    """Looks at one store as it is now, for what somebody wants.

    What was forgotten before is in none of it, unless it is to be erased: then nothing of it may stay in the copies.
    """

    def __init__(self, store: Store, raw: RawArchive, wanted: DeletionRequest) -> None:
        self._store, self._raw, self.wanted = store, raw, wanted
        key = Home(raw.root.parent).key()
        self._suppression, self._ownership = SuppressionList(store, key), Ownership(store, raw, key)
        every = {source.id: source for source in store.sources.all() if source.id is not None}
        self.sources = {
            number: each for number, each in every.items() if wanted.erase or each.coverage.keys() != {DELETED}
        }
        told = {source.session for source in self.sources.values()}
        self.sessions = {number: each for number, each in store.sessions.all().items() if number in told}
        self.outlines = store.exchanges.outlines()
        self._kept = {source.session for source in every.values() if DELETED in source.coverage}
        """The sessions of which something was forgotten that can be had back."""
        if all(each.state is not State.KEPT for each in store.tombstones.all()):
            self._kept.clear()

    def select(self) -> Selection:
        """What is meant; raises `InvalidInput` for a name of nothing, or of several sessions."""
        wanted = self.wanted
        if wanted.names_nothing:
            raise InvalidInput("Nothing is named", hint=_HINT)
        self._check_agents(wanted.agents)
        named = self._named(wanted.targets)
        fitting = {number for number, session in self.sessions.items() if _fits(session, wanted)}
        narrowed = wanted.since is not None or wanted.until is not None or bool(wanted.mentions)
        chosen = [each for each in self.outlines if each.session in fitting and _in_time(each, wanted)]
        if wanted.targets:
            chosen = [each for each in chosen if named.covers(each)]
        result = Selection(memories=named.memories)
        if wanted.mentions:
            chosen = self._mentioning(wanted, chosen, fitting, named, result)
        result.exchanges = {each.key: each for each in chosen}
        if not narrowed:
            result.sessions = named.sessions & fitting if wanted.targets else fitting
            result.sources = {each for each in named.sources if self.sources[each].session in fitting}
            for source, spans in named.spans.items():
                result.lines[source] = {line for span in spans for line in span}
        self.complete(result)
        result.widened = list(self._widened(named, result))
        return result

    def complete(self, selected: Selection) -> None:
        """Sessions of which nothing would be left go as a whole, and with a session those that worked for it.

        Where a part was forgotten before, something is left: it can be had back.
        """
        left = self._kept | {each.session for each in self.outlines if each.key not in selected.exchanges}
        selected.sessions |= {each.session for each in selected.exchanges.values()} - left
        while new := self._subagents(selected.sessions) - selected.sessions:
            selected.sessions |= new
        for number, source in self.sources.items():
            if source.session in selected.sessions:
                selected.sources.add(number)
        for each in self.outlines:
            if each.session in selected.sessions or each.source in selected.sources:
                selected.exchanges[each.key] = each
        for each in selected.exchanges.values():
            selected.lines.setdefault(each.source, set()).update(range(each.start_line, each.end_line + 1))
        for number in selected.sources:
            selected.lines.pop(number, None)

    def _widened(self, named: _Named, selected: Selection) -> Iterator[Widened]:
        for target, part in named.parts.items():
            for each in selected.exchanges.values():
                lines = range(each.start_line, each.end_line + 1)
                if part == each.key if isinstance(part, int) else part[0] == each.source and _cuts(part[1], lines):
                    yield Widened(target, self.sources[each.source].archived, each.start_line, each.end_line)

    def _check_agents(self, names: Sequence[str]) -> None:
        told = {session.agent for session in self.sessions.values()}
        for name in names:
            if name not in told:
                known = f"Archived are: {', '.join(sorted(told))}." if told else "No session is archived."
                raise InvalidInput(f"Nothing of an agent called {name} is archived", hint=known)

    def _subagents(self, sessions: AbstractSet[int]) -> set[int]:
        parents = {(self.sessions[number].agent, self.sessions[number].native_id) for number in sessions}
        return {
            number
            for number, session in self.sessions.items()
            if session.kind is SessionKind.SUBAGENT and (session.agent, session.parent_id) in parents
        }

    def _named(self, targets: Sequence[str]) -> _Named:
        named = _Named()
        for target in targets:
            if not (
                self._name_item(target, named) or self._name_session(target, named) or self._name_path(target, named)
            ):
                chunk = ids.key(target, "chunk") is not None
                raise InvalidInput(f"Nothing archived is called {target}", hint=_DOCUMENTS if chunk else _HINT)
        return named

    def _name_item(self, target: str, named: _Named) -> bool:
        key = ids.key(target)
        item = self._store.items.load([key]).get(key) if key is not None else None
        if key is None or item is None or ids.plain(target) != ids.PREFIXES.get(item.kind, "\0") + str(key):
            return False
        if item.kind == "observation":
            named.parts[target] = item.exchange
        (named.memories if item.kind == "memory" else named.exchanges).add(item.exchange)
        return True

    def _name_session(self, target: str, named: _Named) -> bool:
        found = self._called(target)
        named.sessions |= found
        return bool(found)

    def _called(self, target: str) -> set[int]:
        """The sessions with this id, or the one whose id begins so."""
        exact = {number for number, session in self.sessions.items() if session.native_id == target}
        begun = {number for number, each in self.sessions.items() if each.native_id.startswith(target)}
        found = exact or (begun if len(target) >= _SHORTEST else set[int]())
        if len({self.sessions[number].native_id for number in found}) > 1:
            raise InvalidInput(f"{len(found)} sessions begin with {target}", hint="Give more characters of the id.")
        return found

    def _name_path(self, target: str, named: _Named) -> bool:
        if (source := self._at(target)) is not None:
            named.sources.add(source)
            return True
        path, _, span = target.rpartition(":")
        first, _, last = span.partition("-")
        if not (first.isdecimal() and (last.isdecimal() or not last)):
            return False
        source = self._at(path)
        if source is None and (source := self._file_of(self._called(path), path)) is None:
            return False
        lines = _within(int(first), int(last or first), self.sources[source].lines)
        named.spans.setdefault(source, []).append(lines)
        named.parts[target] = source, lines
        return True

    def _file_of(self, sessions: AbstractSet[int], name: str) -> int | None:
        """The file that these sessions were told in; raises `InvalidInput` where lines could be those of several."""
        files = [number for number, source in self.sources.items() if source.session in sessions]
        if len(files) > 1:
            raise InvalidInput(
                f"{name} was told in {len(files)} files", hint="Give the path of the one whose lines go."
            )
        return files[0] if files else None

    def _at(self, path: str) -> int | None:
        """The source whose copy, or whose agent's file, this is."""
        try:
            source = self._store.sources.by_archived(self._raw.relative(path))
        except PathOutsideArchive:
            source = None
        if source is None and path:
            source = self._store.sources.at(_resolved(path))
        return source.id if source is not None and source.id in self.sources else None

    def _mentioning(
        self,
        wanted: DeletionRequest,
        chosen: Sequence[ExchangeOutline],
        fitting: Collection[int],
        named: _Named,
        result: Selection,
    ) -> list[ExchangeOutline]:
        """Those of the exchanges in whose lines the text stands; other lines with it are noted in the result."""
        by_source: dict[int, list[ExchangeOutline]] = {}
        for each in self.outlines:
            by_source.setdefault(each.source, []).append(each)
        allowed, found = {each.key for each in chosen}, dict[int, ExchangeOutline]()
        timed = wanted.since is not None or wanted.until is not None
        for number, source in self.sources.items():
            inside = not wanted.targets or number in named.sources or source.session in named.sessions
            if source.session not in fitting or not (inside or allowed & {e.key for e in by_source.get(number, ())}):
                continue
            own = sorted(by_source.get(number, ()), key=lambda each: each.start_line)
            for line in self._lines_with(source, wanted.mentions, result):
                place = bisect_right(own, line, key=lambda each: each.start_line) - 1
                if place >= 0 and line <= own[place].end_line:
                    found |= {own[place].key: own[place]} if own[place].key in allowed else {}
                elif inside and not timed:
                    result.lines.setdefault(number, set()).add(line)
        return list(found.values())

    def _lines_with(self, source: Source, text: str, result: Selection) -> set[int]:
        """The lines on which a text stands that are the copy's own, and are still shown or to be erased."""
        try:
            lines = set(lines_with(self._raw, source, text))
            if lines:
                lines -= self._ownership.repeated(source, _everything_stays)
            if lines and not self.wanted.erase and not TELLING.isdisjoint(source.coverage):
                with reading(self._raw, source.archived) as file:
                    lines -= self._suppression.lines(source.path, split(file))
        except CopyDamaged:
            told = any(each.source == source.id for each in self.outlines)
            result.unread |= {source.archived} if told or is_left(self._raw, source.archived) else set()
            return set()
        return lines


def _everything_stays(_source: int, _line: int) -> bool:
    return True


def lines_with(raw: RawArchive, source: Source, text: str) -> Iterator[int]:
    """The lines of a copy on which a text stands, in upper or lower case, as it is or escaped as in JSON.

    Raises `CopyDamaged`, also where there is no copy any more.
    """
    forms = {text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    wanted = [form.lower().encode("utf-8", "replace") for form in forms]
    with reading(raw, source.archived) as file:
        for line in split(file):
            said = line.data.lower() if line.data.isascii() else line.data.decode("utf-8", "replace").lower().encode()
            if any(form in said for form in wanted):
                yield line.number


def in_project(names: Collection[str], project: str, folder: str) -> bool:
    """Whether a project is one of these, by its name, or by a folder that it lies in."""
    wholes = {str(above) for above in (PurePath(folder), *PurePath(folder).parents)} if folder else set[str]()
    return project in names or any(name.rstrip("/") in wholes for name in names if name)


def _cuts(part: range, whole: range) -> bool:
    """Whether a part names some of these lines and not all of them."""
    return part.start < whole.stop and whole.start < part.stop and not (whole[0] in part and whole[-1] in part)


def _within(first: int, last: int, most: int) -> range:
    """The lines that are named, as far as the copy has them."""
    if first < 1:
        raise InvalidLineRange("lines begin at 1")
    if last < first:
        raise InvalidLineRange(f"it ends at {last}, before it begins at {first}")
    if first > most:
        raise InvalidLineRange(f"line {first} is past the last line, {most}")
    return range(first, min(last, most) + 1)


def _fits(session: Session, wanted: DeletionRequest) -> bool:
    if wanted.agents and session.agent not in wanted.agents:
        return False
    return not wanted.projects or in_project(wanted.projects, session.project, session.cwd)


def _in_time(outline: ExchangeOutline, wanted: DeletionRequest) -> bool:
    if wanted.since is None and wanted.until is None:
        return True
    at = outline.at
    return at is not None and (wanted.since or at) <= at and (wanted.until is None or at < wanted.until)


def _resolved(path: str) -> Path:
    try:
        return Path(path).expanduser().resolve()
    except (OSError, ValueError, RuntimeError):
        return Path(path)
