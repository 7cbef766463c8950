"""Layer 1: ranked events as hits, each shown as the observation that says it best."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice

from ..archiver.store import Store, StoredExchange
from ..archiver.text import one_line
from ..core import ids
from ..core.disclosure import Filters, Hit, Query, Results
from ..core.observation import Observation
from .details import of_exchange, price
from .engine import Engine
from .fusion import Event
from .text_index import TextMatch

_SNIPPET = 300
_RAW_SAYS_MORE = 2.0
"""An exchange is shown instead of its observations where its words match this many times better than theirs."""
_AT_A_TIME = 50


@dataclass(frozen=True, slots=True)
class _Shown:
    """What stands for an event: an observation, or the exchange itself when `key` is the event's own."""

    key: int
    kind: str
    observation: Observation
    lines: tuple[int, int]


class Hits:
    """Answers queries with hits."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store, self._engine = store, engine

    def search(self, query: Query) -> Results:
        """The best hits for a query; with several concepts, one exchange of each conversation that has them all."""
        if len(query.concepts) > 1:
            events = self._engine.search_all(query.concepts, query.mode, query.filters)
            found = self._shown(events, query.filters, raw=True)
        else:
            events = self._engine.search(query.concepts[0], query.mode, query.filters)
            found = self._shown(events, query.filters, raw=False)
        hits = tuple(islice(found, query.limit))
        return Results(query, hits, len(hits), self._engine.lag, self._engine.searched(query.mode))

    def _shown(self, events: Sequence[Event], filters: Filters, *, raw: bool) -> Iterator[Hit]:
        for start in range(0, len(events), _AT_A_TIME):
            part = events[start : start + _AT_A_TIME]
            exchanges = self._store.exchanges.load([event.key for event in part])
            choices = self._choices(exchanges, filters, raw=raw)
            for event in part:
                if event.key in exchanges and (shown := _best(event, choices[event.key])):
                    yield self._hit(event, shown, exchanges[event.key])

    def _choices(self, exchanges: dict[int, StoredExchange], filters: Filters, *, raw: bool) -> dict[int, list[_Shown]]:
        """What may stand for each exchange: those of its observations that pass the filters, and itself if it does."""
        learned = {} if raw else self._store.observations.of_exchanges(list(exchanges))
        keys = [*exchanges, *(stored.key for of_one in learned.values() for stored in of_one)]
        allowed = self._allowed(filters, keys)
        choices: dict[int, list[_Shown]] = {}
        for key, stored in exchanges.items():
            span = stored.exchange.span
            choices[key] = [
                _Shown(entry.key, "observation", entry.observation, _lines(entry.observation, stored))
                for entry in learned.get(key, [])
                if entry.key in allowed
            ]
            # The types and concepts of an exchange are those of its observations taken together: where they are asked
            # for, an observation must have them.
            if key in allowed and not (filters.types or filters.concepts):
                own = of_exchange(stored.exchange)
                choices[key].append(_Shown(key, "exchange", own, (span.start_line, span.end_line)))
        return choices

    def _allowed(self, filters: Filters, keys: Sequence[int]) -> AbstractSet[int]:
        return self._engine.allowed(filters, keys) if filters else set(keys)

    def _hit(self, event: Event, shown: _Shown, stored: StoredExchange) -> Hit:
        session = self._store.sessions.load(stored.session)
        observation, match = shown.observation, event.best_match
        start, end = shown.lines
        if shown.kind == "exchange" and match is not None and match.key == event.key:
            start, end = match.start_line, match.end_line
        return Hit(
            id=ids.show(shown.kind, shown.key),
            kind=shown.kind,
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
            tokens=price(observation),
            facts=observation.facts,
            snippet=_snippet(stored, match) or one_line(observation.narrative, _SNIPPET),
        )


def _best(event: Event, choices: Sequence[_Shown]) -> _Shown | None:
    """The observation whose evidence covers the words found, else the one that matches best by itself; the exchange
    when it has no observations, or when its words were found where none of them looked.
    """
    observations = [shown for shown in choices if shown.kind == "observation"]
    exchange = next((shown for shown in choices if shown.kind == "exchange"), None)
    if not observations:
        return exchange
    best = max(observations, key=lambda shown: event.own(shown.key))
    match = event.best_match
    if exchange is None or match is None or match.key != event.key:
        return best
    covering = [shown for shown in observations if _overlap(shown.lines, match)]
    if covering:
        return max(covering, key=lambda shown: event.own(shown.key))
    return exchange if match.fraction > _RAW_SAYS_MORE * event.words_of(best.key) else best


def _overlap(lines: tuple[int, int], match: TextMatch) -> bool:
    return lines[0] <= match.end_line and match.start_line <= lines[1]


def _lines(observation: Observation, stored: StoredExchange) -> tuple[int, int]:
    lines = [line for part in observation.evidence for line in (part.start_line, part.end_line)]
    span = stored.exchange.span
    return min(lines, default=span.start_line), max(lines, default=span.end_line)


def _snippet(stored: StoredExchange, match: TextMatch | None) -> str:
    """What was said where the words were found."""
    if match is None or match.key != stored.key:
        return ""
    turns = (turn.text for turn in stored.exchange.turns if match.start_line <= turn.line <= match.end_line)
    return one_line(" ".join(turns)[: 2 * _SNIPPET], _SNIPPET)
