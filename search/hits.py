"""Layer 1: ranked events as hits, each shown as the observation that says it best."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ..archiver.store import Store, StoredExchange, StoredObservation
from ..archiver.store.exchanges import Head
from ..archiver.text import one_line
from ..core import ids
from ..core.clock import now
from ..core.disclosure import Filters, Hit, Query, Results
from ..core.document import HeldChunk
from ..core.memory import HeldMemory
from ..core.observation import Observation
from .details import of_chunk, of_exchange, of_memory
from .engine import Engine
from .findings import TextMatch
from .fusion import Event

_SNIPPET = 300
_RAW_SAYS_MORE = 2.0
"""An exchange is shown instead of its observations where its words match this many times better than theirs."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """What stands for an event: an observation, or the exchange itself without one; or a memory or a chunk of a
    document, which is its own.
    """

    event: Event
    learned: StoredObservation | None
    held: HeldMemory | HeldChunk | None = None


class Hits:
    """Answers queries with hits."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store, self._engine = store, engine

    def search(self, query: Query) -> Results:
        """The best hits for a query; with several concepts, one exchange of each conversation that has them all."""
        first, *more = query.concepts
        if more:
            events = self._engine.search_all(query.concepts, query.mode, query.filters)
            choices: Iterable[_Choice] = (_Choice(event, None) for event in events)
        else:
            events = self._engine.search(first, query.mode, query.filters)
            choices = self._choices(events, query.filters, query.limit)
        hits = tuple(self._shown(list(islice(choices, query.limit))))
        return Results(query, hits, len(hits), self._engine.lag, self._engine.searched(query.mode))

    def _choices(self, events: Sequence[Event], filters: Filters, at_a_time: int) -> Iterator[_Choice]:
        """The best way to show each event whose exchange or observations satisfy the filters."""
        for start in range(0, len(events), at_a_time):
            part = events[start : start + at_a_time]
            learned = self._store.observations.of_exchanges([event.key for event in part])
            keys = [*(event.key for event in part), *(stored.key for known in learned.values() for stored in known)]
            allowed = self._engine.allowed(filters, keys) if filters else set(keys)
            memories = self._store.memories.load([event.key for event in part])
            chunks = self._store.documents.load([event.key for event in part])
            at = now()
            for event in part:
                if event.key in chunks:
                    if event.key in allowed:
                        yield _Choice(event, None, chunks[event.key])
                    continue
                if event.key in memories:
                    if event.key in allowed and memories[event.key].holds_at(at):
                        yield _Choice(event, None, memories[event.key])
                    continue
                observations = [stored for stored in learned.get(event.key, []) if stored.key in allowed]
                # The types and concepts of an exchange are those of its observations taken together: where they are
                # asked for, an observation must have them.
                itself = event.key in allowed and not (filters.types or filters.concepts)
                if observations or itself:
                    yield _Choice(event, _best(event, observations, itself=itself))

    def _shown(self, choices: Sequence[_Choice]) -> Iterator[Hit]:
        heads = self._store.exchanges.heads([choice.event.key for choice in choices])
        bare = [choice.event.key for choice in choices if choice.learned is None and choice.held is None]
        whole = self._store.exchanges.load(bare)
        for choice in choices:
            # An exchange may be removed by another process while we look.
            if isinstance(choice.held, HeldChunk):
                yield _of_chunk(choice.event, choice.held)
            elif choice.held is not None:
                yield _of_memory(choice.event, choice.held)
            elif choice.event.key in heads and (choice.learned or choice.event.key in whole):
                yield self._hit(choice, heads[choice.event.key], whole.get(choice.event.key))

    def _hit(self, choice: _Choice, head: Head, whole: StoredExchange | None) -> Hit:
        """A hit on an observation, or on an exchange, which alone is needed whole."""
        event, learned, match = choice.event, choice.learned, choice.event.best_match
        if learned is not None:
            observation = learned.observation
            start, end = observation.lines or (head.start_line, head.end_line)
        else:
            assert whole is not None
            observation = of_exchange(whole.exchange)
            start, end = head.start_line, head.end_line
            if match is not None and match.key == event.key:
                start, end = match.start_line, match.end_line
        kind = "observation" if learned else "exchange"
        return Hit(
            id=ids.show(kind, learned.key if learned else event.key),
            kind=kind,
            type=str(observation.type),
            title=observation.title,
            project=head.project,
            at=observation.at,
            score=event.score,
            similarity=event.similarity,
            session_id=head.session_id,
            path=head.path,
            start_line=start,
            end_line=end,
            tokens=learned.price if learned else observation.price,
            facts=observation.facts,
            snippet=self._snippet(event) or one_line(observation.narrative, _SNIPPET),
        )

    def _snippet(self, event: Event) -> str:
        """What was said where the words were found, if they were found in the exchange itself."""
        match = event.best_match
        if match is None or match.key != event.key:
            return ""
        texts = self._store.exchanges.texts_on(event.key, match.start_line, match.end_line)
        return one_line(" ".join(texts)[: 2 * _SNIPPET], _SNIPPET)


def _of_memory(event: Event, held: HeldMemory) -> Hit:
    observation, memory = of_memory(held), held.memory
    return Hit(
        id=held.id,
        kind="memory",
        type=memory.type,
        title=observation.title,
        project=memory.project or memory.namespace,
        at=held.created,
        score=event.score,
        similarity=event.similarity,
        session_id=memory.session_id,
        path=memory.path,
        start_line=0,
        end_line=0,
        tokens=observation.price,
        facts=observation.facts,
        snippet=one_line(memory.content, _SNIPPET),
    )


def _of_chunk(event: Event, held: HeldChunk) -> Hit:
    observation, chunk = of_chunk(held), held.chunk
    return Hit(
        id=held.id,
        kind=chunk.kind,
        type=chunk.unit or chunk.kind,
        title=observation.title,
        project=held.namespace,
        at=held.at,
        score=event.score,
        similarity=event.similarity,
        session_id="",
        path=str(held.source_file),
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        tokens=observation.price,
        facts=observation.facts,
        snippet=one_line(chunk.text, _SNIPPET),
    )


def _best(event: Event, observations: Sequence[StoredObservation], *, itself: bool) -> StoredObservation | None:
    """The observation whose evidence covers the words found, else the one that matches best by itself; none when
    there are none, or when the words were found in the exchange, where no observation looked.
    """
    best = max(observations, key=lambda stored: event.own(stored.key), default=None)
    match = event.best_match
    if best is None or not itself or match is None or match.key != event.key:
        return best
    covering = [stored for stored in observations if _covers(stored.observation, match)]
    if covering:
        return max(covering, key=lambda stored: event.own(stored.key))
    return None if match.fraction > _RAW_SAYS_MORE * event.words_of(best.key) else best


def _covers(observation: Observation, match: TextMatch) -> bool:
    """Whether the evidence overlaps the words found; what proves nothing in particular is about the whole exchange."""
    lines = observation.lines
    return lines is None or (lines[0] <= match.end_line and match.start_line <= lines[1])
