"""Representatives: the items that hits show for events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ...core.clock import now
from ..query.tokenizer import label
from ..rank.item_finder import is_related

if TYPE_CHECKING:
    from ...archiver.store import Store, StoredObservation
    from ...core.document import StoredChunk
    from ...core.memory import StoredMemory
    from ...core.observation import Observation
    from ...core.query import Filters
    from ..index.matches import TextMatch
    from ..rank.engine import Engine
    from ..rank.fusion import Event

_RAW_SAYS_MORE = 2.0
"""An exchange represents itself if its words match this many times better than the words of its observations."""
_SUMMARY = 0.5
"""Weight of a session summary. A summary repeats parts of other observations and is less specific."""
_AS_GOOD = 0.5
"""Minimum share of the best score for counting further events of a session."""
_GROWTH = 4
"""Factor by which the number of events to read grows while too few events satisfy the filters."""


class Representative(Struct, frozen=True):
    """Item that a hit shows for an event.

    Attributes:
        learned: Observation that represents the exchange; None if the exchange represents itself.
        held: Memory or document chunk. It has no exchange and is a separate event.
        more: Number of other events in the session with a similar score, in a search for sessions.
    """

    event: Event
    learned: StoredObservation | None = None
    held: StoredMemory | StoredChunk | None = None
    more: int = 0


class _Candidate(NamedTuple):
    """Event with the observations that satisfy the filters.

    Attributes:
        itself: Whether the exchange itself satisfies the filters.
        held: Whether the event may be a memory or a document chunk.
    """

    event: Event
    observations: Sequence[int]
    itself: bool
    held: bool


class Representatives:
    """Selection of a representative for each event."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store, self._engine = store, engine

    def of(self, events: Iterable[Event], filters: Filters, at_a_time: int) -> Iterator[Representative]:
        """Yield a representative for each event that has an item satisfying the filters, in the order of events."""
        left = self._satisfying(events, filters, at_a_time)
        while part := list(islice(left, at_a_time)):
            yield from self._part(part)

    def by_session(self, representatives: Iterable[Representative]) -> list[Representative]:
        """Return the first representative of each session. Memories and documents have no session and are left out."""
        every = [each for each in representatives if each.held is None]
        items = self._store.items.load([each.event.key for each in every])
        groups: dict[int, list[Representative]] = {}
        for each in every:
            if each.event.key in items:
                groups.setdefault(items[each.event.key].session, []).append(each)
        return [replace(first, more=_as_good(first, rest)) for first, *rest in groups.values()]

    def _satisfying(self, events: Iterable[Event], filters: Filters, at_a_time: int) -> Iterator[_Candidate]:
        """Yield events that have an item satisfying the filters. Batches grow while few events satisfy the filters."""
        left = iter(events)
        # The index stores the types and concepts of all observations of an exchange together. One observation must
        # satisfy all of these filters. It may be an earlier observation that this exchange repeats.
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
            at_a_time *= _GROWTH

    def _part(self, candidates: Sequence[_Candidate]) -> Iterator[Representative]:
        learned = self._store.observations.load([key for each in candidates for key in each.observations])
        memories: dict[int, StoredMemory] = {}
        chunks: dict[int, StoredChunk] = {}
        kinds = self._store.items.kinds([each.event.key for each in candidates if each.held])
        if others := [key for key, kind in kinds.items() if kind != "exchange"]:
            memories, chunks = self._store.memories.load(others), self._store.documents.load(others)
        at = now()
        for event, keys, itself, _ in candidates:
            if held := memories.get(event.key) or chunks.get(event.key):
                shown = is_related(event) or event.similarity is None  # without vector search, all items are shown
                if shown and (event.key in chunks or memories[event.key].is_valid_at(at)):
                    yield Representative(event, held=held)
                continue
            observations = [learned[key] for key in keys if key in learned]
            if observations or itself:
                yield Representative(event, _best(event, observations, itself=itself))


def _as_good(first: Representative, rest: Sequence[Representative]) -> int:
    return sum(other.event.score >= _AS_GOOD * first.event.score for other in rest)


def _best(event: Event, observations: Sequence[StoredObservation], *, itself: bool) -> StoredObservation | None:
    """Return the observation whose evidence covers the matching words, or else the best-matching observation.

    Return None if no observation exists, or if the exchange matches much better outside the evidence.
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
    """Return whether an observation satisfies the type and concept filters."""
    concepts = {label(concept) for concept in observation.concepts}
    typed = not filters.types or observation.type in filters.types
    return typed and (not filters.concepts or not concepts.isdisjoint(map(label, filters.concepts)))


def _covers(observation: Observation, match: TextMatch) -> bool:
    """Return whether the evidence overlaps the matching words. Without evidence, an observation covers its exchange."""
    lines = observation.lines
    return lines is None or (lines[0] <= match.end_line and match.start_line <= lines[1])
