"""Selection of the item that the hit of each event shows, and of distinct hits.

The number of hits per session is limited, and observations with equal titles have one hit.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.conversation import now
from ...core.document import StoredChunk
from ..query.tokenizer import label
from ..rank.item_finder import is_related

if TYPE_CHECKING:
    from ...archiver.store import StoredObservation
    from ...core.memory import StoredMemory
    from ...core.observation import Observation
    from ...core.query import Filters
    from ..index.matches import TextMatch
    from ..rank.engine import Engine
    from ..rank.fusion import Event

_MUCH_BETTER = 2.0
"""An exchange is shown instead of its observation if its text score is more than this multiple of the observation's."""
_SUMMARY = 0.5
"""Factor for the score of a session summary, which is less specific than the observations that it summarizes."""
_REPLACED = 0.5
"""Factor for the score of an observation that a later observation of the session replaces."""
_SIMILAR_SCORE = 0.5
"""Minimum score of an event that `Representative.more` counts, as a share of the best score of the session."""
_GROWTH = 4
"""Factor by which the number of events read at once grows from batch to batch."""


class Representative(Struct, frozen=True):
    """Event, and the item that represents the event in a hit.

    Attributes:
        observation: Observation that represents the exchange, or None if the exchange represents itself.
        standalone: Memory or document chunk, which is an event without an exchange.
        more: In a search for sessions, the number of other events of the session with a similar score.
    """

    event: Event
    observation: StoredObservation | None = None
    standalone: StoredMemory | StoredChunk | None = None
    more: int = 0


class _Candidate(NamedTuple):
    """Event, with the keys of its observations that satisfy the filters.

    Attributes:
        exchange_passes: True if the exchange itself satisfies the filters.
        can_be_standalone: True if the event satisfies the filters and has no observation. It is then an exchange, a
            memory or a document chunk.
    """

    event: Event
    observations: Sequence[int]
    exchange_passes: bool
    can_be_standalone: bool


class Representatives:
    """Selection of a representative for each event."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store, self._engine = store, engine

    def of(self, events: Iterable[Event], filters: Filters, at_a_time: int) -> Iterator[Representative]:
        """Yield the representative of each event in which any item satisfies the filters, in the same order."""
        left = self._satisfying(events, filters, at_a_time)
        while batch := list(islice(left, at_a_time)):
            yield from self._choose(batch)

    def by_session(self, representatives: Iterable[Representative], filters: Filters) -> list[Representative]:
        """Return one representative per session, in the order of `representatives`.

        It is the first representative of the session in `representatives`. If the session has a summary that satisfies
        the filters, the representative shows this summary. Memories and documents are left out, because they have no
        session.
        """
        every = [each for each in representatives if each.standalone is None]
        items = self._store.items.load([each.event.key for each in every])
        groups: dict[int, list[Representative]] = {}
        for each in every:
            if each.event.key in items:
                groups.setdefault(items[each.event.key].session, []).append(each)
        summaries = self._store.summaries.of_sessions(groups)
        keys = [summary.key for summary in summaries.values()]
        allowed = self._engine.snapshot.allowed(filters, keys) if filters else set(keys)
        shown = {session: summary for session, summary in summaries.items() if summary.key in allowed}
        return [
            replace(first, observation=shown.get(session, first.observation), more=_count_similar(first, rest))
            for session, (first, *rest) in groups.items()
        ]

    def _satisfying(self, events: Iterable[Event], filters: Filters, at_a_time: int) -> Iterator[_Candidate]:
        """Yield the events with an item that satisfies the filters. Events are read in growing batches."""
        left = iter(events)
        # The index stores the types and concepts of all observations of an exchange together. One observation must
        # satisfy all of these filters. It may be an earlier observation that this exchange repeats.
        has_labels = bool(filters.types or filters.concepts)
        while batch := list(islice(left, at_a_time)):
            keys = [event.key for event in batch]
            learned = self._store.observations.keys_of_exchanges(keys)
            every = [*keys, *chain.from_iterable(learned.values())]
            allowed = self._engine.snapshot.allowed(filters, every) if filters else set(every)
            again = self._store.confirmations.of_exchanges([*filter(allowed.__contains__, keys)]) if has_labels else {}
            for event in batch:
                observations = [key for key in learned.get(event.key, ()) if key in allowed]
                confirms = any(_matches_labels(stored.observation, filters) for stored in again.get(event.key, ()))
                can_be_standalone = event.key in allowed and event.key not in learned
                exchange_passes = event.key in allowed and (confirms or not has_labels)
                if observations or exchange_passes or can_be_standalone:
                    yield _Candidate(event, observations, exchange_passes, can_be_standalone)
            at_a_time *= _GROWTH

    def _choose(self, candidates: Sequence[_Candidate]) -> Iterator[Representative]:
        learned = self._store.observations.load([key for each in candidates for key in each.observations])
        memories: dict[int, StoredMemory] = {}
        chunks: dict[int, StoredChunk] = {}
        kinds = self._store.items.kinds([each.event.key for each in candidates if each.can_be_standalone])
        if others := [key for key, kind in kinds.items() if kind != "exchange"]:
            memories, chunks = self._store.memories.load(others), self._store.documents.load(others)
        replaced = self._store.replacements.of_observations(list(learned))
        at = now()
        for event, keys, exchange_passes, _ in candidates:
            if item := memories.get(event.key) or chunks.get(event.key):
                shown = is_related(event) or event.similarity is None  # without vector search, all items are shown
                if shown and (event.key in chunks or memories[event.key].is_valid_at(at)):
                    yield Representative(event, standalone=item)
                continue
            observations = [learned[key] for key in keys if key in learned]
            if observations or exchange_passes:
                yield Representative(event, _best(event, observations, replaced, exchange_passes=exchange_passes))


def _count_similar(first: Representative, rest: Sequence[Representative]) -> int:
    return sum(other.event.score >= _SIMILAR_SCORE * first.event.score for other in rest)


def _best(
    event: Event, observations: Sequence[StoredObservation], replaced: Container[int], *, exchange_passes: bool
) -> StoredObservation | None:
    """Return the observation whose evidence covers the matching text, or else the best-matching observation.

    Return None if no observation exists, or if the exchange matches much better outside the evidence.
    """

    def score(stored: StoredObservation) -> float:
        factor = (_SUMMARY if stored.observation.is_summary else 1) * (_REPLACED if stored.key in replaced else 1)
        return event.score_of(stored.key) * factor

    best = max(observations, key=score, default=None)
    match = event.best_match
    if best is None or not exchange_passes or match is None or match.key != event.key:
        return best
    covering = [stored for stored in observations if _covers(stored.observation, match)]
    if covering:
        return max(covering, key=score)
    return None if match.fraction > _MUCH_BETTER * event.words_of(best.key) else best


def _matches_labels(observation: Observation, filters: Filters) -> bool:
    """Return whether an observation satisfies the type and concept filters."""
    concepts = {label(concept) for concept in observation.concepts}
    typed = not filters.types or observation.type in filters.types
    return typed and (not filters.concepts or not concepts.isdisjoint(map(label, filters.concepts)))


def _covers(observation: Observation, match: TextMatch) -> bool:
    """Return whether the matching lines overlap the evidence, or True for an observation without evidence."""
    lines = observation.lines
    return lines is None or (lines[0] <= match.end_line and match.start_line <= lines[1])


_COMPARED = 10
"""Number of hits whose titles are compared with the query. It is constant, so that pages do not depend on the limit."""


class DistinctHits:
    """Filter that drops hits beyond the maximum per session, hits that repeat a better hit's title, and copied chunks.

    If a file is in several namespaces, only one copy of each of its chunks is kept. `repeated_in` returns the sessions
    of the hits that were dropped because they repeat the title of a hit.
    """

    def __init__(self, store: Store, per_session: int) -> None:
        """Keep at most `per_session` hits of each session, or all hits if `per_session` is 0."""
        self._store, self._per_session = store, per_session
        self._counts: dict[int, int] = {}
        self._first_by_title: dict[str, Representative] = {}
        self._repeating: dict[int, dict[int, None]] = {}
        """Sessions of the hits that repeat the title of a hit, in order, by the event of that hit."""
        self._chunks = set[tuple[Path, int, str]]()
        self._session_of: dict[int, int | None] = {}
        """Session of each exchange without observations."""

    def of(self, representatives: Iterable[Representative]) -> Iterator[Representative]:
        """Yield the hits to show, in the same order. Memories and documents have no session and are always shown."""
        for each in representatives:
            if isinstance(each.standalone, StoredChunk) and self._is_copy(each.standalone):
                continue
            session = self._session(each)
            if session is None or not self._per_session:
                yield each
            elif not self._repeats(each, session) and self._counts.get(session, 0) < self._per_session:
                self._counts[session] = self._counts.get(session, 0) + 1
                yield each

    def titled_first(self, representatives: Iterator[Representative], title: str) -> Iterator[Representative]:
        """Yield the hits, with exact title matches first.

        Among the first `_COMPARED` hits, those with this title come first, followed by those of sessions with this
        title. The words of a title can match another hit better, for example if the title names the project.
        """
        first, wanted = list(islice(representatives, _COMPARED)), title.strip()
        numbers = [self._session(each) for each in first]
        sessions = self._store.sessions.titled(filter(None, numbers), wanted)

        def place(at: int) -> int:
            learned = first[at].observation
            if learned is not None and learned.observation.title.casefold() == wanted.casefold():
                return 0
            return 1 if numbers[at] in sessions else 2

        yield from (first[at] for at in sorted(range(len(first)), key=place))
        yield from representatives

    def repeated_in(self, each: Representative) -> tuple[str, ...]:
        """Return the IDs of the sessions whose hits were dropped because they repeat the title of this hit."""
        numbers = self._repeating.get(each.event.key, {})
        known = self._store.sessions.several(numbers) if numbers else {}
        return tuple(known[number].native_id for number in numbers)

    def _is_copy(self, stored: StoredChunk) -> bool:
        place = stored.source_file, stored.index, stored.chunk.text
        is_known = place in self._chunks
        self._chunks.add(place)
        return is_known

    def _session(self, each: Representative) -> int | None:
        if each.standalone is not None:
            return None
        if each.observation is not None:
            return each.observation.session
        key = each.event.key
        if key not in self._session_of:
            item = self._store.items.load([key]).get(key)
            self._session_of[key] = item.session if item else None
        return self._session_of[key]

    def _repeats(self, each: Representative, session: int) -> bool:
        if each.observation is None:
            return False
        first = self._first_by_title.setdefault(each.observation.observation.title.casefold(), each)
        if first is each:
            return False
        assert first.observation is not None
        if session != first.observation.session:
            self._repeating.setdefault(first.event.key, {})[session] = None
        return True
