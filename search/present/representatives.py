"""Representatives: what stands for an event, where several items tell of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ...core.clock import now
from ..query.tokenizer import label
from ..rank.finder import concerns

if TYPE_CHECKING:
    from ...archiver.store import Store, StoredObservation
    from ...core.document import HeldChunk
    from ...core.memory import StoredMemory
    from ...core.observation import Observation
    from ...core.query import Filters
    from ..index.matches import TextMatch
    from ..rank.engine import Engine
    from ..rank.fusion import Event

_RAW_SAYS_MORE = 2.0
"""An exchange is shown instead of its observations where its words match this many times better than theirs."""
_SUMMARY = 0.5
"""Weight of how well a session's summary matches: it has a part of what every observation says, and answers less."""
_AS_GOOD = 0.5
"""From which share of its best score on a session has more that matches."""
_FURTHER = 4
"""How many times more events are looked at wherever too few of them satisfy the filters."""


class Representative(Struct, frozen=True):
    """What stands for an event: an observation, or the exchange itself without one; or a memory or a chunk of a
    document, which is its own. `more` is how many other events of its session match about as well, where sessions are
    asked for.
    """

    event: Event
    learned: StoredObservation | None = None
    held: StoredMemory | HeldChunk | None = None
    more: int = 0


class _Candidate(NamedTuple):
    """An event with those of its observations that satisfy the filters, whether it does so `itself`, and whether it may
    be something that is `held`, which no observation was made of.
    """

    event: Event
    observations: Sequence[int]
    itself: bool
    held: bool


class Representatives:
    """Chooses for each event the best way to show it."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store, self._engine = store, engine

    def of(self, events: Iterable[Event], filters: Filters, at_a_time: int) -> Iterator[Representative]:
        """One choice for each event of which something satisfies the filters, in their order."""
        left = self._satisfying(events, filters, at_a_time)
        while part := list(islice(left, at_a_time)):
            yield from self._part(part)

    def by_session(self, choices: Iterable[Representative]) -> list[Representative]:
        """Return the first choice of each session. A memory or a document belongs to none and is left out."""
        every = [choice for choice in choices if choice.held is None]
        items = self._store.items.load([choice.event.key for choice in every])
        groups: dict[int, list[Representative]] = {}
        for choice in every:
            if choice.event.key in items:
                groups.setdefault(items[choice.event.key].session, []).append(choice)
        return [replace(first, more=_as_good(first, rest)) for first, *rest in groups.values()]

    def _satisfying(self, events: Iterable[Event], filters: Filters, at_a_time: int) -> Iterator[_Candidate]:
        """The events of which something satisfies the filters. The more do not, the more are looked at at once."""
        left = iter(events)
        # The types and concepts of an exchange are those of its observations taken together: where they are
        # asked for, an observation must have them, be it one that was learned elsewhere and said again here.
        labelled = bool(filters.types or filters.concepts)
        while part := list(islice(left, at_a_time)):
            keys = [event.key for event in part]
            learned = self._store.observations.keys_of_exchanges(keys)
            every = [*keys, *chain.from_iterable(learned.values())]
            allowed = self._engine.allowed(filters, every) if filters else set(every)
            again = self._store.confirmations.of_exchanges([*filter(allowed.__contains__, keys)]) if labelled else {}
            for event in part:
                observations = [key for key in learned.get(event.key, ()) if key in allowed]
                confirms = any(_has(stored.observation, filters) for stored in again.get(event.key, ()))
                held = event.key in allowed and event.key not in learned
                itself = event.key in allowed and (confirms or not labelled)
                if observations or itself or held:
                    yield _Candidate(event, observations, itself, held)
            at_a_time *= _FURTHER

    def _part(self, candidates: Sequence[_Candidate]) -> Iterator[Representative]:
        learned = self._store.observations.load([key for each in candidates for key in each.observations])
        memories: dict[int, StoredMemory] = {}
        chunks: dict[int, HeldChunk] = {}
        kinds = self._store.items.kinds([each.event.key for each in candidates if each.held])
        if others := [key for key, kind in kinds.items() if kind != "exchange"]:
            memories, chunks = self._store.memories.load(others), self._store.documents.load(others)
        at = now()
        for event, keys, itself, _ in candidates:
            if held := memories.get(event.key) or chunks.get(event.key):
                told = concerns(event) or event.similarity is None  # as where nothing was compared: the newest, text
                if told and (event.key in chunks or memories[event.key].is_valid_at(at)):
                    yield Representative(event, held=held)
                continue
            observations = [learned[key] for key in keys if key in learned]
            if observations or itself:
                yield Representative(event, _best(event, observations, itself=itself))


def _as_good(first: Representative, rest: Sequence[Representative]) -> int:
    return sum(other.event.score >= _AS_GOOD * first.event.score for other in rest)


def _best(event: Event, observations: Sequence[StoredObservation], *, itself: bool) -> StoredObservation | None:
    """Return the observation whose evidence covers the words found, else the one that matches best by itself; None when
    there are none, or when the words were found in the exchange, outside what the observations cover.
    """

    def own(stored: StoredObservation) -> float:
        return event.own(stored.key) * (_SUMMARY if stored.observation.is_summary else 1)

    best = max(observations, key=own, default=None)
    match = event.best_match
    if best is None or not itself or match is None or match.key != event.key:
        return best
    covering = [stored for stored in observations if _covers(stored.observation, match)]
    if covering:
        return max(covering, key=own)
    return None if match.fraction > _RAW_SAYS_MORE * event.words_of(best.key) else best


def _has(observation: Observation, filters: Filters) -> bool:
    """Whether it is of one of the types and has one of the concepts that are asked for."""
    concepts = {label(concept) for concept in observation.concepts}
    typed = not filters.types or observation.type in filters.types
    return typed and (not filters.concepts or not concepts.isdisjoint(map(label, filters.concepts)))


def _covers(observation: Observation, match: TextMatch) -> bool:
    """Whether the evidence overlaps the words found; what proves nothing in particular is about the whole exchange."""
    lines = observation.lines
    return lines is None or (lines[0] <= match.end_line and match.start_line <= lines[1])
