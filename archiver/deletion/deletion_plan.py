"""Planning: all that a selection means: the marks by which it will be known, and who says the same again."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from msgspec import Struct

from ...core.errors import CopyDamaged
from ...core.progress import Progress, silent
from ..copies.raw import RawArchive
from ..files.lines import split
from ..store import Source, Store
from .ownership import TELLING, Ownership, is_left
from .selection import Selection, Selector
from .suppression import SuppressionList


class DeletionPlan(Struct, frozen=True):
    """What goes, with the marks by which it will be known, and the last change that was seen when it was made.

    `shared` are lines of copies that stay, by source, which say the same again and go with it. `unread` are the names
    of copies that are damaged: whether they do cannot be told. `kept` counts the lines of copies that go which repeat
    what other sessions said first: there they stay.
    """

    selector: Selector
    selected: Selection
    marks: frozenset[int]
    shared: Mapping[int, AbstractSet[int]]
    unread: tuple[str, ...]
    kept: int
    seq: int

    def goes(self, source: Source, line: int) -> bool:
        """Whether a line of a copy goes."""
        number = source.id or 0
        return self.selected.holds(number, line) or line in self.shared.get(number, ())

    @property
    def erases(self) -> bool:
        """Whether it leaves the copies, too."""
        return self.selector.wanted.erase

    @property
    def sources(self) -> list[Source]:
        """The sources that go or lose lines, by id."""
        touched = self.selected.sources | {number for number, lines in self.selected.lines.items() if lines}
        return [self.selector.sources[number] for number in sorted(touched)]

    @property
    def sessions(self) -> set[int]:
        """The sessions that go or lose something."""
        return self.selected.sessions | {source.session for source in self.sources if source.session is not None}


class Planner:
    """Plans in one archive."""

    def __init__(self, store: Store, raw: RawArchive, key: bytes) -> None:
        self._store, self._raw = store, raw
        self._suppression, self._ownership = SuppressionList(store, key), Ownership(store, raw, key)
        self._files = Ownership(store, raw, key, files=True)

    def plan(self, selector: Selector, selected: Selection, progress: Progress = silent) -> DeletionPlan:
        """What goes with a selection: the same lines in other copies, and what is known by them, too.

        Raises `CopyDamaged` where lines of a copy are to go that cannot be read; whole copies go all the same.
        """
        seq = self._store.changes.last()
        marks, kept = self._marks(selector, selected)
        shared, unread = self._shared(selector, selected, marks, progress)
        if self._take_over(selector, selected, shared):
            selector.complete(selected)
            marks, kept = self._marks(selector, selected)
            shared = {number: lines for number, lines in shared.items() if number not in selected.sources}
        return DeletionPlan(
            selector, selected, frozenset(marks), shared, tuple(sorted(unread | selected.unread)), kept, seq
        )

    def _marks(self, selector: Selector, selected: Selection) -> tuple[set[int], int]:
        """By what the lines that go are known: those that are not repeated from what stays, nor forgotten before.

        And how many go from copies that are removed, and stay where they were said first.
        """
        marks, kept = set[int](), 0
        for number in selected.sources | selected.lines.keys():
            try:
                told, others = self._marks_of(number, selector, selected, self._ownership)
            except CopyDamaged:
                if number not in selected.sources:
                    raise
                told, others = self._marks_of_lost(number, selector, selected)
            marks |= told
            kept += others if number in selected.sources else 0
        return marks, kept

    def _marks_of_lost(self, number: int, selector: Selector, selected: Selection) -> tuple[set[int], int]:
        """The same of a copy that is damaged or gone, as far as it can still be told: where not, it is unread."""
        source = selector.sources[number]
        known = set(map(self._suppression.record, self._store.sources.records_of(number)))
        if source.coverage.keys().isdisjoint(TELLING):
            return known | self._ownership.remnants(source), 0
        try:
            return self._marks_of(number, selector, selected, self._files)
        except CopyDamaged:
            selected.unread.add(source.archived)
            return known, 0

    def _marks_of(
        self, number: int, selector: Selector, selected: Selection, ownership: Ownership
    ) -> tuple[set[int], int]:
        source, records = selector.sources[number], self._store.sources.records_of(number)
        others = ownership.repeated(source, lambda owner, line: not selected.holds(owner, line))
        kept = len(others)
        if not selector.wanted.erase:
            others |= self._forgotten_in(source, ownership)

        def goes(line: int) -> bool:
            return selected.holds(number, line) and line not in others

        marks = {mark for line, mark in ownership.marked(source, everywhere=True) if goes(line)}
        return marks | {self._suppression.record(each) for each, line in records.items() if goes(line)}, kept

    def _forgotten_in(self, source: Source, ownership: Ownership) -> set[int]:
        """The lines of a copy that were forgotten before: what is undone is to bring back the same as it took away."""
        if source.coverage.keys().isdisjoint(TELLING):
            return set()
        with ownership.reading(source) as file:
            known = self._suppression.lines(source.path, split(file))
        return known | self._suppression.records(ownership.records(source))

    def _shared(
        self, selector: Selector, selected: Selection, marks: AbstractSet[int], progress: Progress
    ) -> tuple[dict[int, set[int]], set[str]]:
        """The same lines in copies of the same agents that stay, by source, and the copies that are damaged."""
        found, unread = dict[int, set[int]](), set[str]()
        agents = {selector.sources[number].agent for number in selected.sources | selected.lines.keys()}
        others = {
            number: source
            for number, source in selector.sources.items()
            if number not in selected.sources and source.agent in agents
        }
        for done, (number, source) in enumerate(others.items()):
            progress(done, len(others))
            try:
                if lines := self._with_marks(source, marks) - selected.lines.get(number, set()):
                    found[number] = lines
            except CopyDamaged:
                unread |= {source.archived} if is_left(self._raw, source.archived) else set()
        progress(len(others), len(others))
        return found, unread

    def _with_marks(self, source: Source, marks: AbstractSet[int]) -> set[int]:
        """Return the lines of a copy that have some of these marks, or whose records do."""
        lines = {line for line, mark in self._ownership.marked(source) if mark in marks}
        records = self._ownership.records(source).items()
        return lines | {line for record, line in records if self._suppression.record(record) in marks}

    def _take_over(self, selector: Selector, selected: Selection, shared: Mapping[int, AbstractSet[int]]) -> bool:
        """Select the exchanges that say the same elsewhere; whether there are any."""
        near = [
            each
            for each in selector.outlines
            if each.key not in selected.exchanges
            and any(each.start_line <= line <= each.end_line for line in shared.get(each.source, ()))
        ]
        # Between the lines of an exchange may stand what it repeats, which is not its own.
        said = self._store.exchanges.load([each.key for each in near])
        lines = {key: {turn.line for turn in stored.exchange.turns} for key, stored in said.items()}
        again = {each.key: each for each in near if not lines[each.key].isdisjoint(shared[each.source])}
        selected.exchanges |= again
        return bool(again)
