"""Layer 1: ranked events as hits, each shown as the observation that says it best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...archiver.files.clipping import one_line
from ...core import ids
from ...core.errors import InvalidInput, UnknownIds
from ...core.observation import DETAIL_TOKENS
from ...core.query import Filters, Grouping, Query
from ...core.results import Hit, Results, Timeline
from ..query.query_analysis import AnalyzedQuery, unquoted
from ..rank.engine import Engine
from ..rank.fusion import Event
from ..rank.relevance import RankedEvents, Rest
from . import page_cursor
from .details import of_chunk, of_exchange, of_memory
from .representatives import Representative, Representatives
from .snippets import LENGTH, Sought

if TYPE_CHECKING:
    from ...archiver.store import Store, StoredExchange
    from ...archiver.store.exchange_table import ExchangeLocation
    from ...core.conversation import Milliseconds
    from ...core.document import HeldChunk
    from ...core.memory import StoredMemory
    from .zero_results import ZeroResultExplainer

_WEAK = 3
"""How many of the nearest are shown where nothing is clearly relevant."""


class Hits:
    """Answers queries with hits."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store, self._engine, self._choices = store, engine, Representatives(store, engine)

    def search(self, query: Query, *, snippets: bool = True) -> Results:
        """A page of the best hits for a query; with several concepts, what says best in each conversation that has
        them all; without words, the newest. Without `snippets` a hit shows how it begins instead of where it was
        found: looking that up takes a fifth of the time. Raises `InvalidInput`.
        """
        found = self._found(query) if query.concepts else RankedEvents([], AnalyzedQuery(""))
        answer, near = self._answer(query, found, snippets=snippets)
        if answer.hits or query.cursor:
            return answer
        # Something is nearest to any vector, be it of a word that is none.
        nearest = () if found.wording.unheard else near or self._anywhere(query, snippets=snippets)
        return replace(answer, explanation=self._reasons.why(query, nearest, found.wording))

    def _answer(self, query: Query, found: RankedEvents, *, snippets: bool) -> tuple[Results, tuple[Hit, ...]]:
        """The page, and the nearest that are shown where there are no hits, without saying why."""
        events = found.events if query.weak else found.listed
        page, further = self._page(query, events if query.concepts else self._newest(query.filters))
        hits = self._shown(page, found.wording, query, snippets=snippets)
        if not hits:
            self._store.refuse_unreadable()  # "nothing matches" would not be true
        relevant = found.relevant or query.weak
        answer = Results(
            query,
            hits if relevant else (),
            len(hits) if relevant else 0,
            self._engine.lag,
            self._engine.searched(query.mode),
            cursor=page_cursor.after(page[-1].event.key, query) if relevant and further else "",
            corrections=found.wording.respelled,
            inexact=found.wording.reworded,
            relaxed=found.wording.loosened,
            times=found.wording.occasions,
            empty_times=found.wording.vacant,
            newest=self._last() if found.wording.vacant else None,
            ranking_limit=bool(page and relevant and not further and found.rest != Rest() and events == found.events),
        )
        unworded = {_public(choice) for choice in page if not choice.event.words}
        near = (hit for hit in hits if hit.id not in unworded or not _is_command(hit))
        return answer, tuple(islice(near, _WEAK))

    def around(self, public: str, key: int, count: int) -> Timeline:
        """Return up to `count` exchanges on each side of a hit. Raises `InvalidInput` if it is in no conversation."""
        item = self._store.items.load([key]).get(key)
        if item is None or public != ids.show(item.kind, key):
            raise UnknownIds([public])
        keys = self._store.exchanges.around(item.exchange, count)
        if not keys:
            raise InvalidInput(f"{public} is in no conversation", hint="Give the id of an observation or an exchange.")
        events = [Event.unranked(near) for near in keys]
        choices = list(self._choices.of(events, Filters(), len(events)))
        learned = self._store.observations.load([key]).get(key)
        if learned is not None or key == item.exchange:
            asked = Representative(Event.unranked(item.exchange), learned)
            choices = [asked if choice.event.key == item.exchange else choice for choice in choices]
        hits = self._shown(choices, AnalyzedQuery(""), Query(()), snippets=True)
        ours = [_public(choice) for choice in choices if choice.event.key == item.exchange]
        for anchor in hits:
            if anchor.id in ours:
                return Timeline(anchor.id, hits, anchor.session_id, anchor.path)
        raise UnknownIds([public])  # It was removed by another process while we looked.

    @cached_property
    def _reasons(self) -> ZeroResultExplainer:
        from .zero_results import ZeroResultExplainer  # what is found as it was asked for needs none

        return ZeroResultExplainer(self._store, self._engine)

    def _anywhere(self, query: Query, *, snippets: bool) -> tuple[Hit, ...]:
        """What has the quoted words of a query wherever they stand; nothing where none are quoted."""
        plain = tuple(map(unquoted, query.concepts))
        if plain == query.concepts:
            return ()
        wanted = replace(query, concepts=plain, limit=_WEAK, weak=True)
        answer, _ = self._answer(wanted, self._found(wanted), snippets=snippets)
        return answer.hits

    def _last(self) -> Milliseconds | None:
        """The instant of the newest event; None where nothing is dated."""
        return next((at for at, _ in self._engine.newest(Filters()) if at), None)

    def _newest(self, filters: Filters) -> Iterator[Event]:
        return (Event.unranked(key) for _, key in self._engine.newest(filters))

    def _found(self, query: Query) -> RankedEvents:
        first, *more = query.concepts
        if more:
            return self._engine.find_all(query.concepts, query.mode, query.filters)
        return self._engine.find(first, query.mode, query.filters)

    def _page(self, query: Query, events: Iterable[Event]) -> tuple[list[Representative], bool]:
        """As many choices as are wanted from where the cursor is, and whether there are more."""
        sessions, left = query.by is Grouping.SESSION, iter(events)
        if query.cursor and not sessions:
            _go_on(query, (event.key for event in left))
        choices = self._choices.of(left, query.filters, query.limit + 1)
        if len(query.concepts) > 1:  # several concepts are looked for in conversations
            choices = (choice for choice in choices if choice.held is None)
        if sessions:
            choices = iter(self._choices.by_session(choices))
            if query.cursor:
                _go_on(query, (choice.event.key for choice in choices))
        page = list(islice(choices, query.limit + 1))
        return page[: query.limit], len(page) > query.limit

    def _shown(
        self, choices: Sequence[Representative], wording: AnalyzedQuery, query: Query, *, snippets: bool
    ) -> tuple[Hit, ...]:
        heads = self._store.exchanges.locations([choice.event.key for choice in choices])
        bare = [choice.event.key for choice in choices if choice.learned is None and choice.held is None]
        whole = self._store.exchanges.load(bare)
        again = self._store.repetitions.of_exchanges([choice.event.key for choice in choices])
        sought = Sought.of(wording, self._engine.snapshot) if snippets else None
        shown: list[Hit] = []
        for choice in choices:
            event = choice.event
            if choice.held is not None:
                hit = _of_held(event, choice.held)
            elif event.key in heads and (choice.learned or event.key in whole):
                hit = self._hit(choice, heads[event.key], whole.get(event.key))
            else:
                continue  # An exchange may be removed by another process while we look.
            parts = event.parts if wording.text else ()
            here, also = page_cursor.after(event.key, query), again.get(event.key, ())
            hit = replace(hit, parts=parts, more=choice.more, cursor=here, also_in=also)
            shown.append(hit if sought is None else self._with_snippet(hit, event, sought))
        return tuple(shown)

    def _hit(self, choice: Representative, head: ExchangeLocation, whole: StoredExchange | None) -> Hit:
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
        return Hit(
            id=_public(choice),
            kind="observation" if learned else "exchange",
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
            tokens=min(learned.price, DETAIL_TOKENS) if learned else observation.tokens,
            facts=observation.facts,
            snippet=one_line(observation.narrative, LENGTH),
        )

    def _with_snippet(self, hit: Hit, event: Event, sought: Sought) -> Hit:
        """The hit with what was said where the words were found, if they were found in the exchange itself; else with
        the fact that has what was quoted, if that does not stand in what it shows.
        """
        match, snippet = event.best_match, ""
        if match is not None and match.key == event.key:
            snippet = sought.snippet(self._store.exchanges.texts_on(event.key, match.start_line, match.end_line))
        elif sought.phrases and not sought.stands(hit.snippet):
            snippet = one_line(next(filter(sought.stands, hit.facts), ""), LENGTH)
        shown = snippet or hit.snippet
        return replace(hit, snippet=shown, matched=tuple(sought.words(shown)))


def _go_on(query: Query, keys: Iterator[int]) -> None:
    """Take from these what the pages before had; raises `InvalidInput` where the place of the cursor is gone."""
    ended = page_cursor.event_of(query)
    if ended not in keys:
        raise page_cursor.invalid("what the page before ended with is found no more")


def _is_command(hit: Hit) -> bool:
    """Whether it shows a single word that was typed, as `clear`: near to anything that means nothing."""
    return hit.kind == "exchange" and hit.title.isascii() and len(hit.title.split()) < 2


def _public(choice: Representative) -> str:
    """The id of what stands for an event of a conversation."""
    return ids.show("observation", choice.learned.key) if choice.learned else ids.show("exchange", choice.event.key)


def _of_held(event: Event, held: StoredMemory | HeldChunk) -> Hit:
    from ...core.document import HeldChunk

    return _of_chunk(event, held) if isinstance(held, HeldChunk) else _of_memory(event, held)


def _of_memory(event: Event, held: StoredMemory) -> Hit:
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
        tokens=observation.tokens,
        facts=observation.facts,
        snippet=one_line(memory.content, LENGTH),
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
        tokens=observation.tokens,
        facts=observation.facts,
        snippet=one_line(chunk.text, LENGTH),
    )
