"""Layer 1: ranked events as hits, each shown as the observation that says it best."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ..archiver.store import Store, StoredExchange, StoredObservation
from ..archiver.text import one_line
from ..core import ids
from ..core.disclosure import Filters, Hit, Query, Results
from ..core.observation import Observation
from .details import of_exchange
from .engine import Engine
from .fusion import Event
from .text_index import TextMatch

_SNIPPET = 300
_RAW_SAYS_MORE = 2.0
"""An exchange is shown instead of its observations where its words match this many times better than theirs."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """What stands for an event: an observation, or the exchange itself without one."""

    event: Event
    learned: StoredObservation | None


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
            for event in part:
                observations = [stored for stored in learned.get(event.key, []) if stored.key in allowed]
                # The types and concepts of an exchange are those of its observations taken together: where they are
                # asked for, an observation must have them.
                itself = event.key in allowed and not (filters.types or filters.concepts)
                if observations or itself:
                    yield _Choice(event, _best(event, observations, itself=itself))

    def _shown(self, choices: Sequence[_Choice]) -> Iterator[Hit]:
        exchanges = self._store.exchanges.load([choice.event.key for choice in choices])
        for choice in choices:
            # An exchange may be removed by another process while we look.
            if choice.event.key in exchanges:
                yield self._hit(choice.event, choice.learned, exchanges[choice.event.key])

    def _hit(self, event: Event, learned: StoredObservation | None, stored: StoredExchange) -> Hit:
        session, match = self._store.sessions.load(stored.session), event.best_match
        observation = learned.observation if learned else of_exchange(stored.exchange)
        start, end = (learned.observation.lines if learned else None) or _span(stored)
        if learned is None and match is not None and match.key == event.key:
            start, end = match.start_line, match.end_line
        kind = "observation" if learned else "exchange"
        return Hit(
            id=ids.show(kind, learned.key if learned else event.key),
            kind=kind,
            type=str(observation.type),
            title=observation.title,
            project=session.project,
            at=observation.at,
            score=event.score,
            similarity=event.similarity,
            session_id=session.native_id,
            path=self._store.sources.load(stored.source).archived,
            start_line=start,
            end_line=end,
            tokens=learned.price if learned else observation.price,
            facts=observation.facts,
            snippet=_snippet(stored, match) or one_line(observation.narrative, _SNIPPET),
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


def _span(stored: StoredExchange) -> tuple[int, int]:
    return stored.exchange.span.start_line, stored.exchange.span.end_line


def _snippet(stored: StoredExchange, match: TextMatch | None) -> str:
    """What was said where the words were found."""
    if match is None or match.key != stored.key:
        return ""
    turns = (turn.text for turn in stored.exchange.turns if match.start_line <= turn.line <= match.end_line)
    return one_line(" ".join(turns)[: 2 * _SNIPPET], _SNIPPET)
