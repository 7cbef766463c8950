"""First level of search results: ranked events as hits, with snippets around the matches.

A hit usually shows the best observation of its event. The number of hits per session is limited, and observations with
equal titles have one hit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from functools import cached_property, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.lines import one_line
from ...core import ids
from ...core.conversation import now
from ...core.document import StoredChunk
from ...core.errors import InvalidInput, UnknownIds
from ...core.observation import DETAIL_TOKENS, SUMMARY
from ...core.query import LIMIT_MAX, Filters, Grouping, Query
from ...core.results import Hit, Results, Timeline, outcome_of
from ..query import query_analysis, tokenizer
from ..query.query_analysis import AnalyzedQuery, unquoted
from ..rank.engine import Engine
from ..rank.fusion import Event, RankedEvents
from ..rank.item_finder import is_related
from .details import Exchanges, SessionName, SessionNames, Sessions, chunk_observation, memory_observation
from .snippets import LENGTH, SearchTerms
from .vocabulary import vocabulary

if TYPE_CHECKING:
    from ...archiver.store import Store, StoredObservation
    from ...archiver.store.exchange_table import ExchangeLocation, StoredItem
    from ...core.conversation import Milliseconds
    from ...core.memory import StoredMemory
    from ...core.observation import Observation
    from ..index.matches import TextMatch
    from .zero_results import ZeroResultExplainer

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
        session: Session of the exchange, or 0 for a memory or document chunk.
        more: In a search for sessions, the number of other events of the session with a similar score.
    """

    event: Event
    observation: StoredObservation | None = None
    standalone: StoredMemory | StoredChunk | None = None
    session: int = 0
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

    def by_session(self, events: Iterable[Event], filters: Filters, at_a_time: int) -> Iterator[Representative]:
        """Yield one representative per session, in the order of the first event of each session that satisfies filters.

        If the session has a summary that satisfies the filters, the representative shows this summary, and otherwise
        its first event. Memories and documents are left out, because they have no session.
        """
        candidates = [
            candidate
            for candidate in self._satisfying(events, filters, at_a_time)
            if candidate.observations or candidate.exchange_passes
        ]
        items = self._store.items.load([candidate.event.key for candidate in candidates])
        groups: dict[int, list[_Candidate]] = {}
        for candidate in candidates:
            item = items.get(candidate.event.key)
            if item is not None and item.kind == "exchange":
                groups.setdefault(item.session, []).append(candidate)
        cards = self._cards(groups, filters)
        left = iter(groups.items())
        while batch := list(islice(left, at_a_time)):
            shown = {
                choice.session: choice
                for choice in self._choose([group[0] for number, group in batch if number not in cards])
            }
            for number, (first, *similar) in batch:
                if number in cards:
                    shown[number] = Representative(first.event, cards[number], session=number)
                if number in shown:  # Otherwise, another process has just removed the event.
                    least = _SIMILAR_SCORE * first.event.score
                    yield replace(shown[number], more=sum(candidate.event.score >= least for candidate in similar))

    def _cards(self, sessions: Collection[int], filters: Filters) -> dict[int, StoredObservation]:
        """Return the summaries of these sessions that satisfy the filters, by session."""
        summaries = self._store.summaries.of_sessions(sessions)
        if not filters:
            return summaries
        allowed = self._engine.snapshot.allowed(filters, [summary.key for summary in summaries.values()])
        return {session: summary for session, summary in summaries.items() if summary.key in allowed}

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
            confirmed = (
                self._store.confirmations.of_exchanges([*filter(allowed.__contains__, keys)]) if has_labels else {}
            )
            for event in batch:
                observations = [key for key in learned.get(event.key, ()) if key in allowed]
                confirms = any(matches_labels(stored.observation, filters) for stored in confirmed.get(event.key, ()))
                can_be_standalone = event.key in allowed and event.key not in learned
                exchange_passes = event.key in allowed and (confirms or not has_labels)
                if observations or exchange_passes or can_be_standalone:
                    yield _Candidate(event, observations, exchange_passes, can_be_standalone)
            at_a_time *= _GROWTH

    def _choose(self, candidates: Sequence[_Candidate]) -> Iterator[Representative]:
        learned = self._store.observations.load([key for candidate in candidates for key in candidate.observations])
        memories: dict[int, StoredMemory] = {}
        chunks: dict[int, StoredChunk] = {}
        items = self._store.items.load([candidate.event.key for candidate in candidates if not candidate.observations])
        if others := [key for key, item in items.items() if item.kind != "exchange"]:
            memories, chunks = self._store.memories.load(others), self._store.documents.load(others)
        replaced = self._store.replacements.of_observations(list(learned))
        at = now()
        for event, keys, exchange_passes, _ in candidates:
            if item := memories.get(event.key) or chunks.get(event.key):
                is_listed = is_related(event) or event.similarity is None  # without vector search, all items are shown
                if is_listed and (event.key in chunks or memories[event.key].is_valid_at(at)):
                    yield Representative(event, standalone=item)
                continue
            observations = [learned[key] for key in keys if key in learned]
            if observations:
                best = best_observation(event, observations, replaced, exchange_passes=exchange_passes)
                yield Representative(event, best, session=observations[0].session)
            elif exchange_passes and event.key in items:  # Otherwise, another process has just removed the exchange.
                yield Representative(event, session=items[event.key].session)


def best_observation(
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


def matches_labels(observation: Observation, filters: Filters) -> bool:
    """Return whether an observation satisfies the type and concept filters."""
    concepts = {tokenizer.label(concept) for concept in observation.concepts}
    typed = not filters.types or observation.type in filters.types
    return typed and (not filters.concepts or not concepts.isdisjoint(map(tokenizer.label, filters.concepts)))


def _covers(observation: Observation, match: TextMatch) -> bool:
    """Return whether the matching lines overlap the evidence, or True for an observation without evidence."""
    lines = observation.lines
    return lines is None or (lines[0] <= match.end_line and match.start_line <= lines[1])


_COMPARED = 10
"""Number of hits whose titles are compared with the query. It is constant, so that pages do not depend on the limit."""


class DistinctHits:
    """Filter that drops hits beyond the maximum per session, hits that repeat a better hit's title, and copied chunks.

    If a file is in several namespaces, only one copy of each of its chunks is kept. `repeating` returns the sessions
    of the hits that were dropped because they repeat the title of a hit.
    """

    def __init__(self, per_session: int) -> None:
        """Keep at most `per_session` hits of each session, or all hits if `per_session` is 0."""
        self._per_session = per_session
        self._counts: dict[int, int] = {}
        self._first_by_title: dict[str, Representative] = {}
        self._repeating: dict[int, dict[int, None]] = {}
        """Sessions of the hits that repeat the title of a hit, in order, by the event of that hit."""
        self._chunks = set[tuple[Path, int, str]]()

    def of(self, representatives: Iterable[Representative]) -> Iterator[Representative]:
        """Yield the hits to show, in the same order. Memories and documents have no session and are always shown."""
        for choice in representatives:
            if isinstance(choice.standalone, StoredChunk) and self._is_copy(choice.standalone):
                continue
            session = choice.session
            if not session or not self._per_session:
                yield choice
            elif not self._repeats(choice) and self._counts.get(session, 0) < self._per_session:
                self._counts[session] = self._counts.get(session, 0) + 1
                yield choice

    def repeating(self, choice: Representative) -> Iterable[int]:
        """Return the sessions whose hits were dropped because they repeat the title of this hit, in order."""
        return self._repeating.get(choice.event.key, {})

    def _is_copy(self, stored: StoredChunk) -> bool:
        position = stored.source_file, stored.index, stored.chunk.text
        is_known = position in self._chunks
        self._chunks.add(position)
        return is_known

    def _repeats(self, choice: Representative) -> bool:
        if choice.observation is None:
            return False
        first = self._first_by_title.setdefault(choice.observation.observation.title.casefold(), choice)
        if first is choice:
            return False
        if choice.session != first.session:
            self._repeating.setdefault(first.event.key, {})[choice.session] = None
        return True


def titled_first(
    representatives: Iterator[Representative], title: str, titled: Callable[[set[int], str], Collection[int]]
) -> Iterator[Representative]:
    """Yield the hits, with exact title matches first.

    Among the first `_COMPARED` hits, those with this title come first, followed by those of sessions with this
    title. The words of a title can match another hit better, for example if the title names the project. `titled`
    returns those of some sessions that have a title.
    """
    first, plain = list(islice(representatives, _COMPARED)), title.strip()
    sessions = titled({choice.session for choice in first}, plain)

    def place(at: int) -> int:
        learned = first[at].observation
        if learned is not None and learned.observation.title.casefold() == plain.casefold():
            return 0
        return 1 if first[at].session in sessions else 2

    yield from (first[at] for at in sorted(range(len(first)), key=place))
    yield from representatives


_WEAK = 3
"""Maximum number of nearest hits to show if no hit is relevant."""


class Hits:
    """Search that returns hits, one page at a time."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store, self._engine, self._representatives = store, engine, Representatives(store, engine)
        self._names, self._sessions, self._exchanges = SessionNames(store), Sessions(store), Exchanges(store)

    def search(self, query: Query, *, snippets: bool = True) -> Results:
        """Return a page of hits, best first.

        For several concepts, return the best hit of each conversation that contains all concepts. For a query without
        words, return the newest entries.

        Args:
            query: The query.
            snippets: True to show the matching text in hits, False to show the beginning of their text. Snippets take a
                fifth of the search time.

        Raises:
            InvalidInput: The cursor is invalid.
        """
        ranked = self._ranked(query) if query.concepts else RankedEvents([], AnalyzedQuery(""))
        answer, nearest_hits = self._results(query, ranked, snippets=snippets)
        words = partial(vocabulary, query, ranked, self._representatives, self._engine.snapshot)
        if answer.hits or query.cursor:
            return replace(answer, vocabulary=words(answer.hits))
        # Even a query without a known word has nearest vectors.
        nearest = (
            () if ranked.query.no_known_term else nearest_hits or self._with_phrases_as_words(query, snippets=snippets)
        )
        explanation = self._explainer.explain(query, nearest, ranked.query)
        return replace(answer, explanation=explanation, vocabulary=() if explanation.missing else words(nearest))

    def around(self, public: str, key: int, count: int) -> Timeline:
        """Return a hit and all of its exchange, with up to `count` exchanges before and after it.

        Raises:
            UnknownIds: The item does not exist.
            InvalidInput: The item is not part of a conversation.
        """
        item = self._store.items.load([key]).get(key)
        if item is None or public != ids.show(item.kind, key):
            raise UnknownIds([public])
        keys, path = self._neighbours(item, count)
        if not keys:
            raise InvalidInput(
                f"{public} is not part of a conversation", hint="Give the ID of an observation or an exchange."
            )
        events = [Event.unranked(neighbour) for neighbour in keys]
        representatives = list(self._representatives.of(events, Filters(), len(events)))
        learned = self._store.observations.of_exchange(item.exchange)
        own = [
            Representative(Event.unranked(item.exchange), each, session=item.session)
            for each in (*([None] if key == item.exchange else ()), *learned)
            if each is None or each.key == key or not each.summary
        ]
        place = [each.event.key for each in representatives].index(item.exchange)
        representatives[place : place + 1] = own
        hits = self._load_hits(representatives, AnalyzedQuery(""), Query(()), snippets=True)
        for anchor in hits:
            if anchor.id == public:
                return Timeline(anchor.id, hits, anchor.session_id, path or anchor.path, self._outcome(item.session))
        raise UnknownIds([public])  # another process has just removed the item

    def _neighbours(self, item: StoredItem, count: int) -> tuple[list[int], str]:
        """Return the exchange of an item with up to `count` exchanges on either side, and the path of their transcript.

        If the session's main source does not contain the exchange, the exchanges around it come from its own source,
        and the path is empty.
        """
        conversation = self._store.summaries.conversation(item.session)
        source = self._store.sources.main(item.session)
        if source is None or item.exchange not in conversation:
            return self._store.exchanges.around(item.exchange, count), ""
        position = conversation.index(item.exchange)
        return conversation[max(0, position - count) : position + count + 1], source.archived

    def of_session(self, number: int) -> Timeline:
        """Return all observations of a session, and its exchanges without observations, in chronological order.

        Raises:
            InvalidInput: The session has no event.
        """
        keys = self._store.summaries.conversation(number)
        stored = self._store.observations.of_exchanges(keys)
        learned = {key: [each for each in stored.get(key, ()) if not each.summary] for key in keys}
        representatives = [
            *self._representatives.of(
                (Event.unranked(key) for key in keys if not learned[key]), Filters(), len(keys) + 1
            ),
            *(Representative(Event.unranked(key), each, session=number) for key in keys for each in learned[key]),
        ]
        order = {key: position for position, key in enumerate(keys)}
        representatives.sort(key=lambda choice: order[choice.event.key])
        hits = self._load_hits(representatives, AnalyzedQuery(""), Query(()), snippets=False)
        if not hits:
            raise InvalidInput("This session has no entries", hint="Run `palaver sessions` to list sessions.")
        hits = tuple(sorted(hits, key=lambda hit: hit.at or 0))
        source = self._store.sources.main(number)
        path = source.archived if source else hits[0].path
        return Timeline("", hits, hits[0].session_id, path, self._outcome(number))

    def _outcome(self, number: int) -> str:
        """Return the first result of a session, unless its title states it."""
        card = self._store.summaries.of_session(number)
        return outcome_of(card.observation.facts, card.observation.title.removeprefix(SUMMARY)) if card else ""

    def _results(self, query: Query, ranked: RankedEvents, *, snippets: bool) -> tuple[Results, tuple[Hit, ...]]:
        """Return a page of results, and the nearest hits for the zero-result explanation of an empty page."""
        events = shown_events(query, ranked)
        distinct = DistinctHits(per_session(query))
        ordered = self._successors_first(events) if query.concepts else self._newest(query.filters)
        page, further = self._page(query, ordered, distinct)
        hits = self._load_hits(page, ranked.query, query, snippets=snippets)
        repeated_in = {public_id(choice): self._native_ids(distinct.repeating(choice)) for choice in page}
        hits = tuple(
            replace(hit, also_in=tuple(dict.fromkeys((*hit.also_in, *repeated_in.get(hit.id, ()))))) for hit in hits
        )
        if not hits:
            self._store.refuse_unreadable()  # unreadable content may contain matches
        hits = self._after_replacements(hits)
        relevant = ranked.relevant or query.weak
        answer = Results(
            query,
            hits if relevant else (),
            len(hits) if relevant else 0,
            self._engine.snapshot.lag,
            self._engine.used(query.mode),
            cursor=query_analysis.after(page[-1].event.key, query) if relevant and further else "",
            corrections=ranked.query.corrections,
            inexact=ranked.query.inexact,
            relaxed=ranked.query.relaxed,
            times=ranked.query.times,
            empty_times=ranked.query.empty_times,
            newest=self._newest_instant() if ranked.query.empty_times else None,
            ranking_limit=bool(page and relevant and not further and ranked.truncated and events == ranked.events),
        )
        without_words = {public_id(choice) for choice in page if not choice.event.words}
        nearest = (hit for hit in hits if hit.id not in without_words or not _is_command(hit))
        return answer, tuple(islice(nearest, _WEAK))

    def _native_ids(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Return the IDs of these sessions in the same order."""
        sessions = self._store.sessions.several(numbers) if numbers else {}
        return tuple(sessions[number].native_id for number in numbers)

    def _successors_first(self, events: Sequence[Event]) -> list[Event]:
        """Return the events, with each superseded memory directly after the memory that superseded it."""
        if not (later := self._store.memory_edges.successors()):
            return [*events]
        by_key = {event.key: event for event in events}
        ordered: dict[int, Event] = {}
        for event in events:
            chain = [event]
            while (key := later.get(chain[-1].key)) in by_key and key not in ordered and by_key[key] not in chain:
                chain.append(by_key[key])
            ordered.update((successor.key, successor) for successor in reversed(chain))
        return [*ordered.values()]

    def _after_replacements(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        """Return the hits, with each replaced observation moved after its replacement.

        The cursors keep their positions, so that the next page is the same.
        """
        keys = {hit.id: key for hit in hits if hit.kind == "observation" and (key := ids.key(hit.id)) is not None}
        places = {key: public for public, key in keys.items()}
        ordered = list(hits)
        for link in self._store.replacements.of_observations(list(places)).values():
            order = [hit.id for hit in ordered]
            if link.later in places and order.index(places[link.earlier]) < order.index(places[link.later]):
                moved = ordered.pop(order.index(places[link.earlier]))
                ordered.insert(order.index(places[link.later]), moved)
        return tuple(replace(hit, cursor=at.cursor) for hit, at in zip(ordered, hits, strict=True))

    @cached_property
    def _explainer(self) -> ZeroResultExplainer:
        from .zero_results import ZeroResultExplainer  # few queries need it

        return ZeroResultExplainer(self._store, self._engine, self._count)

    def _count(self, query: Query) -> int:
        """Return the number of hits of a query, up to the maximum of a page."""
        ranked = self._ranked(query) if query.concepts else RankedEvents([], AnalyzedQuery(""))
        if query.concepts and not (ranked.relevant or query.weak):
            return 0
        events = shown_events(query, ranked) if query.concepts else self._newest(query.filters)
        every = replace(query, limit=LIMIT_MAX, cursor="")
        return len(self._page(every, events, DistinctHits(per_session(query)))[0])

    def _with_phrases_as_words(self, query: Query, *, snippets: bool) -> tuple[Hit, ...]:
        """Return hits for the query without its quotation marks, or no hits for a query without quotation marks."""
        plain = tuple(map(unquoted, query.concepts))
        if plain == query.concepts:
            return ()
        unquoted_query = replace(query, concepts=plain, limit=_WEAK, weak=True)
        answer, _ = self._results(unquoted_query, self._ranked(unquoted_query), snippets=snippets)
        return answer.hits

    def _newest_instant(self) -> Milliseconds | None:
        """Return the instant of the newest event, or None if no event has a date."""
        return next((at for at, _ in self._engine.newest(Filters()) if at), None)

    def _newest(self, filters: Filters) -> Iterator[Event]:
        return (Event.unranked(key) for _, key in self._engine.newest(filters))

    def _ranked(self, query: Query) -> RankedEvents:
        first, *further = query.concepts
        if further:
            return self._engine.find_all(query.concepts, query.mode, query.filters)
        return self._engine.find(first, query.mode, query.filters, also=query.also, here=query.here)

    def _page(self, query: Query, events: Iterable[Event], distinct: DistinctHits) -> tuple[list[Representative], bool]:
        """Return the representatives on a page, and True if another page follows."""
        by_session, limited, left = query.by is Grouping.SESSION, bool(per_session(query)), iter(events)
        needs_earlier_pages = by_session or limited
        if query.cursor and not needs_earlier_pages:
            skip_to_cursor(query, (event.key for event in left))
        select = self._representatives.by_session if by_session else self._representatives.of
        representatives = select(left, query.filters, query.limit + 1)
        if limited:
            representatives = distinct.of(representatives)
        if len(query.concepts) > 1:  # several concepts are searched only in conversations
            representatives = (choice for choice in representatives if choice.standalone is None)
        if needs_earlier_pages and len(query.concepts) == 1:
            representatives = titled_first(representatives, query.concepts[0], self._store.sessions.titled)
        if query.cursor and needs_earlier_pages:
            skip_to_cursor(query, (choice.event.key for choice in representatives))
        page = list(islice(representatives, query.limit + 1))
        return page[: query.limit], len(page) > query.limit

    def _load_hits(
        self, representatives: Sequence[Representative], analyzed: AnalyzedQuery, query: Query, *, snippets: bool
    ) -> tuple[Hit, ...]:
        locations = self._store.exchanges.locations([choice.event.key for choice in representatives])
        bare = [
            choice.event.key for choice in representatives if choice.observation is None and choice.standalone is None
        ]
        exchanges = self._exchanges.load(bare, self._engine.snapshot.seq)
        repeated_in = self._store.repetitions.of_exchanges([choice.event.key for choice in representatives])
        terms = SearchTerms.of(analyzed, self._engine.snapshot) if snippets else None
        names = self._names.of_all(location.session for location in locations.values())
        cards = self._store.summaries.of_sessions(names) if query.by is Grouping.SESSION else {}
        costs = self._sessions.costs(names, cards) if query.by is Grouping.SESSION else {}
        later = self._store.memory_edges.successors()
        hits: list[Hit] = []
        for choice in representatives:
            event = choice.event
            if isinstance(choice.standalone, StoredChunk):
                hit = _chunk_hit(event, choice.standalone)
            elif choice.standalone is not None:
                successor = later.get(event.key)
                superseded_by = "" if successor is None else ids.show("memory", successor)
                hit = replace(memory_hit(event, choice.standalone), superseded_by=superseded_by)
            elif event.key in locations and (choice.observation or event.key in exchanges):
                location = locations[event.key]
                hit = exchange_hit(choice, location, exchanges.get(event.key))
                name = names[location.session]
                hit = replace(hit, session_title=name.title, short_session_id=name.short_id)
                if query.by is Grouping.SESSION:
                    card = cards.get(location.session)
                    listed = card.observation.facts if card else ()
                    facts = self._store.session_labels.undismissed(location.session, listed)
                    hit = _session_hit(hit, name, facts, costs[location.session])
            else:
                continue  # another process has just removed the exchange
            parts = event.parts if analyzed.text else ()
            cursor, also_in = query_analysis.after(event.key, query), repeated_in.get(event.key, ())
            hit = replace(hit, parts=parts, more=choice.more, cursor=cursor, also_in=also_in)
            hits.append(hit if terms is None else with_snippet(hit, event, terms, self._store.exchanges.texts_on))
        return tuple(hits)


def shown_events(query: Query, ranked: RankedEvents) -> list[Event]:
    """Return the events from which the hits of a query are made."""
    if query.weak:
        return ranked.events
    return ranked.matching if query.by is Grouping.SESSION else ranked.listed


def per_session(query: Query) -> int:
    """Return the maximum number of hits per session, or 0 for no maximum.

    There is no maximum if the results are sessions, if the query has a session filter, or if it does not have exactly
    one concept.
    """
    if len(query.concepts) != 1 or query.by is Grouping.SESSION or query.filters.sessions:
        return 0
    return query.per_session


def skip_to_cursor(query: Query, keys: Iterator[int]) -> None:
    """Skip the events up to the cursor. Raises `InvalidInput` if the event of the cursor no longer matches."""
    ended = query_analysis.event_of(query)
    if ended not in keys:
        raise query_analysis.invalid("the last result of the previous page no longer matches")


def _is_command(hit: Hit) -> bool:
    """Return whether a hit is a one-word prompt, such as `clear`.

    The vectors of such prompts are near those of meaningless queries, so these prompts are not shown as nearest hits.
    """
    return hit.kind == "exchange" and hit.title.isascii() and len(hit.title.split()) < 2


def public_id(choice: Representative) -> str:
    """Return the public ID of the observation that represents an event, or else of the exchange."""
    return (
        ids.show("observation", choice.observation.key)
        if choice.observation
        else ids.show("exchange", choice.event.key)
    )


def _session_hit(hit: Hit, name: SessionName, facts: tuple[str, ...], cost: int) -> Hit:
    """Return a hit for the whole session of this hit: with the ID, title, facts and token cost of the session."""
    return replace(
        hit, id=name.short_id, kind="session", type="session", title=name.title or hit.title, facts=facts, tokens=cost
    )


def exchange_hit(choice: Representative, location: ExchangeLocation, exchange: Observation | None) -> Hit:
    """Return a hit for an observation, or for an exchange if the representative has no observation."""
    event, learned, match = choice.event, choice.observation, choice.event.best_match
    if learned is not None:
        observation = learned.observation
        start, end = observation.lines or (location.start_line, location.end_line)
    else:
        assert exchange is not None
        observation = exchange
        start, end = location.start_line, location.end_line
        if match is not None and match.key == event.key:
            start, end = match.start_line, match.end_line
    return Hit(
        id=public_id(choice),
        kind="observation" if learned else "exchange",
        type="session" if observation.is_summary else str(observation.type),
        title=observation.name,
        project=location.project,
        at=observation.at,
        score=event.score,
        similarity=event.similarity,
        session_id=location.session_id,
        path=location.path,
        start_line=start,
        end_line=end,
        tokens=min(learned.tokens, DETAIL_TOKENS) if learned else observation.tokens,
        facts=observation.facts,
        snippet=one_line(observation.narrative, LENGTH),
    )


def with_snippet(hit: Hit, event: Event, terms: SearchTerms, texts_on: Callable[[int, int, int], Sequence[str]]) -> Hit:
    """Return the hit with a snippet: the matching text of the exchange, or the fact that matches best.

    `texts_on` returns the texts on lines of an exchange.
    """
    match, snippet = event.best_match, ""
    untitled = hit.kind == "observation" and not (terms.phrases or terms.words(hit.title))
    own = max((hit.snippet, *hit.facts), key=lambda text: len(terms.words(text))) if untitled else ""
    explains = bool(terms.words(own))
    if explains:
        snippet = one_line(own, LENGTH)
    elif match is not None and match.key == event.key:
        snippet = terms.snippet(texts_on(event.key, match.start_line, match.end_line))
    elif terms.phrases and not terms.has_phrase(hit.snippet):
        snippet = one_line(next(filter(terms.has_phrase, hit.facts), ""), LENGTH)
    excerpt = snippet or hit.snippet
    return replace(hit, snippet=excerpt, matched=tuple(terms.words(excerpt)), needs_snippet=explains)


def memory_hit(event: Event, stored: StoredMemory) -> Hit:
    """Return a hit for a memory."""
    observation, memory = memory_observation(stored), stored.memory
    return Hit(
        id=stored.id,
        kind="memory",
        type=memory.type,
        title=observation.title,
        project=memory.project or memory.namespace,
        at=stored.created,
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


def _chunk_hit(event: Event, stored: StoredChunk) -> Hit:
    observation, chunk = chunk_observation(stored), stored.chunk
    return Hit(
        id=stored.id,
        kind=chunk.kind,
        type=chunk.unit or chunk.kind,
        title=observation.title,
        project=stored.namespace,
        at=stored.at,
        score=event.score,
        similarity=event.similarity,
        session_id="",
        path=str(stored.source_file),
        start_line=chunk.start_line,
        end_line=chunk.end_line,
        tokens=observation.tokens,
        facts=observation.facts,
        snippet=one_line(chunk.text, LENGTH),
    )
