"""Forgetting: what was selected goes out of the store at once, and tombstones keep it from coming back.

What is only forgotten stays in the copies, where nobody is shown it, until it is undone or its time is over. What is
erased leaves the copies as well (`erasing.py`).
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from ...core.clock import now
from ...core.conversation import UNINDEXED, Milliseconds
from ...core.errors import CopyDamaged, InvalidInput
from ...core.forgetting import UNTOLD, About
from ...core.home import Home
from ...core.progress import Progress, silent
from ..copies.compression import opened
from ..copies.forms import Copy
from ..copies.raw import RawArchive
from ..parse.lines import Line, split
from ..parse.parsing import REPEATED
from ..store import Forgotten, Source, State, Store
from .erasing import Erasing, parsed
from .oblivion import FORGOTTEN, Oblivion
from .selection import Selected, Selector

KEPT: Final = 30 * 24 * 3600 * 1000
"""Milliseconds for which what was forgotten can be had back."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What goes, with the marks by which it will be known, and the last change that was seen when it was made."""

    selector: Selector
    selected: Selected
    marks: frozenset[int]
    shared: frozenset[int]
    seq: int
    oblivion: Oblivion

    def is_shared(self, source: Source, line: Line) -> bool:
        """Whether a line of a copy that stays is one of those that go."""
        return source.id in self.shared and not self.marks.isdisjoint(self.oblivion.line(source.path, line))

    @property
    def sources(self) -> list[Source]:
        """The sources that go or lose lines, by id."""
        touched = self.selected.sources | {number for number, lines in self.selected.lines.items() if lines}
        return [self.selector.sources[number] for number in sorted(touched)]

    @property
    def sessions(self) -> set[int]:
        """The sessions that go or lose something."""
        return self.selected.sessions | {source.session for source in self.sources if source.session is not None}


def _nothing() -> None:
    """What nobody has to do besides."""


class Forgetting:
    """Forgets in one archive. Everything but planning runs under the archiver's lease."""

    def __init__(self, store: Store, raw: RawArchive) -> None:
        self._store, self._raw = store, raw
        self._key = Home(raw.root.parent).key()
        self._oblivion = Oblivion(store, self._key)
        self.erasing = Erasing(store, raw)

    def plan(self, selector: Selector, selected: Selected, progress: Progress = silent) -> Plan:
        """Everything that a selection means: the same lines in other copies, and what is known by them, too."""
        seq = self._store.changes.last()
        marks = self._marks(selector, selected)
        shared = self._shared(selector, selected, marks, progress)
        if self._take_over(selector, selected, shared):
            selector.complete(selected)
            marks = self._marks(selector, selected)
        repeating = {
            number
            for number, source in selector.sources.items()
            if number not in selected.sources
            and source.coverage.get(REPEATED)
            and _same_agent(source, selector, selected)
        }
        return Plan(
            selector,
            selected,
            frozenset(marks),
            frozenset(shared.keys() | repeating) - selected.sources,
            seq,
            self._oblivion,
        )

    def token(self, plan: Plan, *rest: object) -> str:
        """What stands for this set and no other. `rest` is what else the set consists of."""
        selected, sources = plan.selected, plan.selector.sources
        told = (
            sorted(selected.exchanges.values()),
            sorted(selected.sessions),
            [(number, sources[number].size, sources[number].lines) for number in sorted(selected.sources)],
            sorted((number, *sorted(lines)) for number, lines in selected.lines.items()),
            rest,
        )
        return hashlib.blake2b(repr(told).encode("utf-8", "replace"), key=self._key, digest_size=6).hexdigest()

    def forget(self, plan: Plan, *, erase: bool, also: Callable[[int], None], besides: About = UNTOLD) -> int:
        """Forget what was planned, together with what `also` does with the number of the forgetting, which is returned.

        `besides` counts what goes with it that was never said. Raises `InvalidInput`, and changes nothing, when some of
        it changed since it was planned.
        """
        selected, tombstones = plan.selected, self._store.tombstones
        with self._store.transaction():
            if selected.exchanges.keys() & set(self._store.changes.since(plan.seq)):
                raise InvalidInput("Something of it changed just now", hint="Run the command again for a new preview.")
            state = State.ERASING if erase else State.KEPT
            number = tombstones.begin(now(), state, plan.marks, _about(plan, besides, erase=erase))
            self._store.exchanges.delete(list(selected.exchanges))
            self._blank_sessions(plan)
            if erase:
                self._erase(plan, number)
            tombstones.reread([source.id for source in plan.sources if source.id is not None])
            also(number)
        return number

    def expired(self, at: Milliseconds) -> list[Forgotten]:
        """What was forgotten longer ago than it is kept."""
        return [each for each in self._store.tombstones.all() if each.state is State.KEPT and each.at < at - KEPT]

    def expire(self, number: int, also: Callable[[], None] = _nothing) -> None:
        """It cannot be had back any more: its lines are to go from the copies, together with what `also` does.

        Raises `InvalidInput` as `undo` does.
        """
        forgotten = self._kept(number)
        sources = self._store.sources.all()
        told = [source for source in sources if source.coverage.get(FORGOTTEN)]
        gone = [
            source for source in told if source.coverage.keys() == {FORGOTTEN} and not self._is_kept(source, forgotten)
        ]
        with self._store.transaction():
            self._store.tombstones.become(forgotten.id, State.ERASING)
            copies = {source.archived: source in gone for source in told}
            self._store.tombstones.intend(forgotten.id, copies)
            self._drop(gone, sources)
            also()

    def drop_empty(self) -> None:
        """Remove files of which only erased lines are left: a database restored from a backup told of them again."""
        number = next((each.id for each in self._store.tombstones.all() if each.state is State.ERASING), None)
        sources = self._store.sources.all()
        gone = [each for each in sources if self._is_erased(each)]
        if number is not None and gone:
            with self._store.transaction():
                self._store.tombstones.intend(number, {source.archived: True for source in gone})
                self._drop(gone, sources)
            self.erasing.finish()

    def _drop(self, gone: Sequence[Source], sources: Sequence[Source]) -> None:
        """Remove the rows of these sources, and of sessions that no other of all `sources` tells of."""
        whole = [source.id for source in gone if source.id is not None]
        left = {source.session for source in sources if source not in gone}
        sessions = {source.session for source in gone if source.session is not None} - left
        self._store.tombstones.erase_rows(sessions, whole, [])

    def _is_erased(self, source: Source) -> bool:
        if not Copy(self._raw.root, source.archived).exists():
            records = self._store.sources.records_of(source.id or 0)
            return bool(records) and self.erasing.known.records(records) == set(records.values())
        if source.coverage.keys() != {FORGOTTEN}:
            return False
        try:
            with self._raw.open(source.archived) as file:
                return len(self.erasing.known.lines(source.path, split(file))) == source.lines
        except (CopyDamaged, OSError):
            return False  # `finish` tells of it; all other copies are looked at

    def _is_kept(self, source: Source, forgotten: Forgotten) -> bool:
        """Whether something of a source was forgotten at another time, and can still be had back."""
        others = [each for each in self._store.tombstones.all() if each.state is State.KEPT and each.id != forgotten.id]
        try:
            marks = {mark for _, mark in self._marked(source)}
        except (CopyDamaged, OSError):
            return True  # what cannot be told is not deleted
        return any(self._store.tombstones.known(marks, of=each.id) for each in others)

    def undo(self, number: int, also: Callable[[], None] = _nothing) -> None:
        """Have back what was forgotten, together with what `also` does.

        Raises `InvalidInput` when it was erased, or never was.
        """
        with self._store.transaction():
            self._kept(number)
            self._store.tombstones.undo(number)
            told = [each.id for each in self._store.sources.all() if each.coverage.get(FORGOTTEN) and each.id]
            self._store.tombstones.reread(told)
            also()

    def _kept(self, number: int) -> Forgotten:
        found = self._store.tombstones.load(number)
        if found is None or found.state is not State.KEPT:
            said = "was erased, and nothing is left of it" if found else "was never made"
            raise InvalidInput(f"Forgetting {number} {said}", hint="`palaver forget --list` names what can be undone.")
        return found

    def _blank_sessions(self, plan: Plan) -> None:
        """What a session is called may come from what goes; it is told anew when its copies are read again."""
        self._store.summaries.drop(plan.sessions)
        for number in plan.sessions:
            session = self._store.sessions.load(number)
            links = {name: value for name, value in session.links.items() if name == UNINDEXED}
            self._store.sessions.save(
                replace(session, title="", title_rank=-1, branch="", cwd="", started=None, ended=None, links=links)
            )

    def _erase(self, plan: Plan, number: int) -> None:
        selected, sources = plan.selected, plan.selector.sources
        partly = {number for number, lines in selected.lines.items() if lines} | plan.shared
        copies = {sources[each].archived: False for each in partly} | {
            sources[each].archived: True for each in selected.sources
        }
        self._store.tombstones.intend(number, copies)
        for each, lines in selected.lines.items():
            records = self._store.sources.records_of(each)
            self._store.tombstones.erase_records([record for record, line in records.items() if line in lines])
        self._store.tombstones.erase_rows(selected.sessions, selected.sources, list(selected.exchanges))

    def _marks(self, selector: Selector, selected: Selected) -> set[int]:
        marks: set[int] = set()
        for number in selected.sources | selected.lines.keys():
            source, records = selector.sources[number], self._store.sources.records_of(number)
            others = self._of_others(source, selected)
            told = chain(self._marked(source, everywhere=True), self._unmasked(source) if source.masked else ())
            marks |= {mark for line, mark in told if selected.holds(number, line) and line not in others}
            marks |= {self._oblivion.record(each) for each, line in records.items() if selected.holds(number, line)}
        return marks

    def _of_others(self, source: Source, selected: Selected) -> set[int]:
        """The lines of a copy that another session, which stays, said first."""
        if not source.coverage.get(REPEATED):
            return set()
        records = parsed(self._raw, source.archived, source.agent, self._key).records
        places = self._store.sources.places(records)
        first = {
            record: owner
            for record, (owner, line) in places.items()
            if owner != source.id and not selected.holds(owner, line)
        }
        kept: set[int] = set()
        for owner in set(first.values()):
            kept |= {
                mark for line, mark in self._marked(self._store.sources.load(owner)) if not selected.holds(owner, line)
            }
        return {records[record] for record in first} | {line for line, mark in self._marked(source) if mark in kept}

    def _marked(self, source: Source, *, everywhere: bool = False) -> Iterator[tuple[int, int]]:
        """Every line of a copy with each of its marks; `everywhere` with those of its place in the copy, too."""
        with self._raw.open(source.archived) as file:
            for line in split(file):
                told = self._oblivion.line_of(source, line) if everywhere else self._oblivion.line(source.path, line)
                for mark in told:
                    yield line.number, mark

    def _unmasked(self, source: Source) -> Iterator[tuple[int, int]]:
        """The marks of the lines of an agent's file, where it still is what was masked: newer rules mask it anew."""
        with suppress(OSError), opened(source.path) as file, self._raw.open(source.archived) as copy:
            for theirs, ours in zip(split(file), split(copy), strict=False):
                marks = self._oblivion.line(source.path, theirs)
                if not marks.isdisjoint(self._oblivion.line(source.path, ours)):
                    yield from ((ours.number, mark) for mark in marks)

    def _shared(
        self, selector: Selector, selected: Selected, marks: set[int], progress: Progress
    ) -> dict[int, set[int]]:
        """The same lines in copies that stay, by source: those of other files of the same agents."""
        found: dict[int, set[int]] = {}
        others = [
            source
            for number, source in selector.sources.items()
            if number not in selected.sources and _same_agent(source, selector, selected)
        ]
        for done, source in enumerate(others):
            progress(done, len(others))
            lines = {line for line, mark in self._marked(source) if mark in marks}
            if lines - selected.lines.get(source.id or 0, set()):
                found[source.id or 0] = lines
        progress(len(others), len(others))
        return found

    def _take_over(self, selector: Selector, selected: Selected, shared: dict[int, set[int]]) -> bool:
        """Select the exchanges that say the same elsewhere; whether there are any."""
        again = [
            each
            for each in selector.outlines
            if each.key not in selected.exchanges
            and any(each.start_line <= line <= each.end_line for line in shared.get(each.source, ()))
        ]
        selected.exchanges |= {each.key: each for each in again}
        return bool(again)


def _about(plan: Plan, besides: About, *, erase: bool) -> About:
    """What is told of it later: while it can be undone, enough to know it again."""
    sessions = [plan.selector.sessions[number] for number in plan.sessions]
    counted = replace(
        besides,
        sessions=len(sessions),
        exchanges=len(plan.selected.exchanges),
        agents=tuple(sorted({each.agent for each in sessions})),
    )
    if erase:
        return counted
    times = [each.at for each in plan.selected.exchanges.values() if each.at is not None]
    projects = tuple(sorted({each.project for each in sessions if each.project}))
    return replace(counted, projects=projects, first=min(times, default=None), last=max(times, default=None))


def _same_agent(source: Source, selector: Selector, selected: Selected) -> bool:
    touched: Sequence[int] = [*selected.sources, *selected.lines]
    return any(selector.sources[number].agent == source.agent for number in touched)
