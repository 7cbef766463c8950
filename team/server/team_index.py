"""Search in what a team shares, as one person sees it: hits, details and lines of conversations.

Ranking, thresholds, the limit of hits per session and snippets are those of a machine. The project of each hit names
the person who shares it. Paths begin with the ID of the session.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final
from uuid import UUID

from msgspec import DecodeError, json
from msgspec.structs import replace

from ...archiver.store import StoredObservation
from ...archiver.store.exchange_table import ExchangeLocation
from ...core import ids, tokens
from ...core.conversation import Exchange
from ...core.errors import InvalidInput, InvalidLineRange, PathOutsideArchive, TooManyIds, UnknownIds
from ...core.memory import Memory, MemoryState, MemoryStats, StoredMemory
from ...core.observation import SUMMARY, Observation
from ...core.query import IDS_MAX, Filters, Grouping, Query
from ...core.results import EXCERPT_BUDGET, Detail, Hit, OutputMatches, Results, TranscriptExcerpt
from ...search.model.embedding import Embedder
from ...search.present.details import exchange_observation, memory_observation
from ...search.present.hits import (
    DistinctHits,
    Representative,
    best_observation,
    exchange_hit,
    matches_labels,
    memory_hit,
    per_session,
    shown_events,
    skip_to_cursor,
    with_snippet,
)
from ...search.present.snippets import SearchTerms
from ...search.present.transcript_reader import exceed_budget, within_budget
from ...search.query import query_analysis
from ...search.query.query_analysis import AnalyzedQuery
from ...search.rank.engine import Engine
from ...search.rank.fusion import Event, RankedEvents
from ...search.rank.item_finder import is_related
from ..protocol import ItemKind, TeamHit, TeamHits, TeamQuery
from .candidates import TeamCandidates
from .database import Database, TeamDatabase
from .raw_objects import FullCopies, names_of
from .raw_store import RawStore
from .shared_items import Item, SharedItems

_BATCH: Final = 20
"""Number of events whose items are loaded at once."""
TURN_MAX: Final = 100_000
"""Maximum characters of a turn that the tools read. Their replies show fewer, and choosing them takes time."""
_DETAILED: Final = {ItemKind.EXCHANGE, ItemKind.OBSERVATION, ItemKind.MEMORY}


class TeamIndex:
    """Implementation of `SearchIndex` for one person of a team."""

    def __init__(
        self,
        database: TeamDatabase,
        team: UUID,
        person: UUID,
        embedder: Embedder,
        raw_store: RawStore | None = None,
    ) -> None:
        self._database, self._team, self._person, self._embedder = database, team, person, embedder
        self._raw_store = raw_store

    def find(self, query: Query, /, *, snippets: bool = True) -> Results:
        """See `SearchIndex.find`. The server does not explain empty results."""
        with self._database.transaction(self._team, self._person) as connection:
            return self._search(connection, query, None, snippets=snippets).results()

    def hits(self, asked: TeamQuery) -> TeamHits:
        """Return the hits of a request of a machine.

        Raises:
            InvalidInput: The request is invalid.
        """
        try:
            filters = json.decode(asked.filters, type=Filters)
        except DecodeError as error:
            raise InvalidInput(f"The filters are invalid: {error}", hint="Update Palaver.") from None
        query = replace(Query.parse(asked.text, limit=asked.limit), filters=filters)
        without = self._person if asked.others else None
        with self._database.transaction(self._team, self._person) as connection:
            return TeamHits(tuple(self._search(connection, query, without, snippets=True).team_hits()))

    def find_output(self, *_arguments: object, **_options: object) -> OutputMatches:
        """Raise `InvalidInput`: the server does not index outputs, also not those of full copies."""
        raise InvalidInput(
            "The output of tools in a team cannot be searched", hint="Search for words of the conversation instead."
        )

    def details(self, public_ids: Sequence[str], /) -> tuple[Detail, ...]:
        """See `SearchIndex.details`. IDs of the protocol are valid too."""
        if not 1 <= len(public_ids) <= IDS_MAX:
            raise TooManyIds(len(public_ids), IDS_MAX)
        with self._database.transaction(self._team, self._person) as connection:
            items = SharedItems(connection, self._team)
            by_key = items.of_keys(key for public in public_ids if (key := ids.key(public)) is not None)
            by_id = {str(item.id): item for item in items.of_ids([*filter(None, map(_uuid, public_ids))])}
            named = {public: by_id.get(public.lower()) or _named(by_key, public) for public in public_ids}
            chosen = {item.key: item for item in named.values() if item is not None and item.kind in _DETAILED}
            if unknown := [public for public, item in named.items() if item is None or item.key not in chosen]:
                problem = UnknownIds(unknown)
                problem.hint = "Use IDs from search results. IDs of sessions are not shared."
                raise problem
            return tuple(_detail(items, item) for item in chosen.values())

    def read(
        self, path: str, start_line: int = 1, end_line: int | None = None, /, *, longest: int | None = TURN_MAX
    ) -> TranscriptExcerpt:
        """See `SearchIndex.read`. Only lines of shared exchanges are returned, complete where a full copy is shared.

        Texts of turns with more than `longest` characters are shortened.
        """
        folder, _, name = path.partition("/")
        session = _uuid(folder)
        with self._database.transaction(self._team, self._person) as connection:
            items = SharedItems(connection, self._team)
            shared = items.exchanges_in(session, name) if session else []
            if not shared:
                raise PathOutsideArchive(path)
            exchanges = items.exchanges(item.key for item in shared)
            copies = FullCopies(self._raw_store, names_of(connection, self._team, [item.id for item in shared]))
        by_id = {item.id: exchanges[item.key] for item in shared}
        excerpt = _excerpt(
            items, shared[0], copies.complete(by_id, start_line, end_line, longest), start_line, end_line
        )
        return copies.labelled(excerpt, shared[0].project, shared[0].person)

    def _search(self, connection: Database, query: Query, without: UUID | None, *, snippets: bool) -> _Search:
        engine = Engine(TeamCandidates(connection, self._team, self._embedder.name), self._embedder)
        return _Search(SharedItems(connection, self._team), engine, query, without, snippets=snippets)


class _Search:
    """One search, and the hits of its page.

    What the person `without` shares is left out before the relevance threshold applies: weak hits of the others do not
    follow because an own item is relevant.
    """

    def __init__(
        self, items: SharedItems, engine: Engine, query: Query, without: UUID | None, *, snippets: bool
    ) -> None:
        self._items, self._engine, self._query, self._without = items, engine, query, without
        self._ranked = self._of_others(self._rank())
        self._terms = SearchTerms.of(self._ranked.query, engine.snapshot) if snippets else None
        self._events = shown_events(query, self._ranked)
        is_shown = self._ranked.relevant or query.weak
        page = list(islice(self._representatives(), query.limit + 1)) if is_shown else []
        self._page, self._is_last = page[: query.limit], len(page) <= query.limit
        items.exchanges(choice.event.key for choice in self._page)  # all at once

    def results(self) -> Results:
        """Return the page."""
        hits = tuple(map(self._hit, self._page))
        ranked = self._ranked.query
        return Results(
            self._query,
            hits,
            len(hits),
            0,
            self._engine.used(self._query.mode),
            cursor="" if self._is_last else query_analysis.after(self._page[-1].event.key, self._query),
            corrections=ranked.corrections,
            inexact=ranked.inexact,
            relaxed=ranked.relaxed,
            times=ranked.times,
            empty_times=ranked.empty_times,
        )

    def team_hits(self) -> Iterator[TeamHit]:
        """Yield the hits of the page for another machine."""
        for choice in self._page:
            hit, item = self._hit(choice), self._item(choice)
            yield TeamHit(
                id=str(item.id),
                kind=hit.kind,
                type=hit.type,
                title=hit.title,
                person=item.person,
                project=item.project,
                at=hit.at,
                session=hit.session_id,
                score=hit.score,
                facts=hit.facts,
                snippet=hit.snippet,
            )

    def _rank(self) -> RankedEvents:
        query, engine = self._query, self._engine
        if not query.concepts:
            events = [Event.unranked(key) for _, key in islice(engine.newest(query.filters), 20 * _BATCH)]
            return RankedEvents(events, AnalyzedQuery(""))
        first, *further = query.concepts
        if further:
            return engine.find_all(query.concepts, query.mode, query.filters)
        return engine.find(first, query.mode, query.filters, also=query.also, here=query.here)

    def _of_others(self, ranked: RankedEvents) -> RankedEvents:
        """Return the events that the person `without` does not share."""
        if self._without is None:
            return ranked
        own = self._items.keys_of(self._without, [event.key for event in ranked.events])
        return replace(ranked, events=[event for event in ranked.events if event.key not in own])

    def _representatives(self) -> Iterator[Representative]:
        """Yield the hits after the cursor."""
        choices: Iterator[Representative] = chain.from_iterable(map(self._choose, _batches(self._events)))
        if self._query.by is Grouping.SESSION:
            choices = self._by_session(choices)
        choices = DistinctHits(per_session(self._query)).of(choices)
        if self._query.cursor:
            skip_to_cursor(self._query, (choice.event.key for choice in choices))
        return choices

    def _choose(self, events: Sequence[Event]) -> Iterator[Representative]:
        """Yield the representative of each event in which an item satisfies the filters."""
        filters, keys, items = self._query.filters, [event.key for event in events], self._items
        items.load(keys)
        own = items.of_keys(keys)
        learned = {key: items.observations_of(item) for key, item in own.items()}
        every = [*keys, *(lesson.key for lessons in learned.values() for lesson in lessons)]
        allowed = self._engine.snapshot.allowed(filters, every) if filters else set(every)
        for event in events:
            item = own.get(event.key)
            if item is None:
                continue
            session = items.session_key(item)
            observations = [_observation(items, lesson) for lesson in learned[event.key] if lesson.key in allowed]
            if filters.types or filters.concepts:
                observations = [stored for stored in observations if matches_labels(stored.observation, filters)]
            passes = event.key in allowed
            if item.kind == ItemKind.MEMORY:
                if passes and (is_related(event) or event.similarity is None):
                    yield Representative(event, standalone=_memory(item))
            elif item.kind == ItemKind.OBSERVATION:  # its exchange is not shared
                if passes:
                    yield Representative(event, _observation(items, item), session=session)
            elif observations:
                best = best_observation(event, observations, (), exchange_passes=passes)
                yield Representative(event, best, session=session)
            elif passes:
                yield Representative(event, session=session)

    def _by_session(self, choices: Iterable[Representative]) -> Iterator[Representative]:
        """Yield the first hit of each session, with the card of the session if it has one."""
        first: dict[int, Representative] = {}
        for choice in choices:
            if choice.session:
                first.setdefault(choice.session, choice)
        learned = [_observation(self._items, item) for item in self._items.observations_in(first)]
        cards = {stored.session: stored for stored in learned if stored.observation.is_summary}
        for session, choice in first.items():
            yield replace(choice, observation=cards.get(session, choice.observation))

    def _item(self, choice: Representative) -> Item:
        key = choice.observation.key if choice.observation else choice.event.key
        return self._items.of_keys([key])[key]

    def _hit(self, choice: Representative) -> Hit:
        item = self._item(choice)
        if isinstance(choice.standalone, StoredMemory):
            hit, texts = memory_hit(choice.event, choice.standalone), list[str]()
        else:
            items, session = self._items, self._items.session_of(item)
            exchange = items.exchanges([choice.event.key]).get(choice.event.key)
            span = exchange.span if exchange else None
            lines = (span.start_line, span.end_line) if span else (1, 1)
            place = ExchangeLocation(*lines, item.project, session.native_id, items.path_of(item), 0, 0, "")
            shown = exchange_observation(exchange) if exchange and choice.observation is None else None
            stored = choice.observation and replace(choice.observation, tokens=choice.observation.observation.tokens)
            hit = exchange_hit(replace(choice, observation=stored), place, shown)
            hit = replace(hit, session_title=session.title)
            match = choice.event.best_match
            first, last = (match.start_line, match.end_line) if match else lines
            texts = [turn.text for turn in (exchange.turns if exchange else ()) if first <= turn.line <= last]
        hit = replace(
            hit,
            project=item.label,
            parts=choice.event.parts if self._ranked.query.text else (),
            cursor=query_analysis.after(choice.event.key, self._query),
        )
        return with_snippet(hit, choice.event, self._terms, lambda _event, _start, _end: texts) if self._terms else hit


def _batches(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    return (events[start : start + _BATCH] for start in range(0, len(events), _BATCH))


def _observation(items: SharedItems, item: Item) -> StoredObservation:
    """Return an observation without its estimated tokens, which only hits show."""
    observation = json.decode(item.body, type=Observation)
    return StoredObservation(
        item.key,
        items.event_of(item).key,
        items.session_key(item),
        observation,
        0,
        observation.is_summary,
    )


def _memory(item: Item) -> StoredMemory:
    at = item.at or 0
    return StoredMemory(item.key, json.decode(item.body, type=Memory), MemoryStats(), MemoryState.ACTIVE, at, at)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _named(items: dict[int, Item], public: str) -> Item | None:
    """Return the item with a public ID, whose prefix must be that of its kind."""
    key = ids.key(public)
    item = items.get(key) if key is not None else None
    return item if item and ids.canonical(public) == ids.canonical(ids.show(item.kind, item.key)) else None


def _detail(items: SharedItems, item: Item) -> Detail:
    session = items.session_of(item)
    lines: tuple[int, int] | None = None
    if item.kind == ItemKind.MEMORY:
        observation = memory_observation(_memory(item))
    elif item.kind == ItemKind.EXCHANGE:
        exchange = items.exchanges([item.key])[item.key]
        observation, lines = exchange_observation(exchange), (exchange.span.start_line, exchange.span.end_line)
    else:
        observation = json.decode(item.body, type=Observation)
        lines = observation.lines
    start, end = lines or (0, 0)
    return Detail(
        id=ids.show(item.kind, item.key),
        kind=item.kind,
        observation=observation,
        project=item.label,
        branch=session.branch,
        session_id=session.native_id,
        session_title=session.title.removeprefix(SUMMARY),
        path=items.path_of(item),
        start_line=start,
        end_line=end,
        tokens=observation.tokens,
    )


def _excerpt(
    items: SharedItems, item: Item, exchanges: Sequence[Exchange], start: int, end: int | None
) -> TranscriptExcerpt:
    session, path = items.session_of(item), items.path_of(item)
    total = max(exchange.span.end_line for exchange in exchanges)
    last = total if end is None else min(end, total)
    if start < 1 or start > total or last < start:
        raise InvalidLineRange(f"{path} has shared lines up to {total}")
    kept = [
        replace(exchange, turns=turns)
        for exchange in exchanges
        if (turns := tuple(turn for turn in exchange.turns if start <= turn.line <= last))
    ]
    next_line = None
    if exceed_budget(kept, EXCERPT_BUDGET):
        kept, next_line = within_budget(kept, EXCERPT_BUDGET)
    return TranscriptExcerpt(
        path=path,
        session_id=session.native_id,
        kind=session.kind,
        parent_id=session.parent_id,
        agent=session.agent,
        project=item.label,
        cwd="",
        branch=session.branch,
        version=session.version,
        title=session.title,
        pull_request="",
        started=session.started,
        start_line=start,
        end_line=next_line - 1 if next_line else last,
        total_lines=total,
        exchanges=tuple(kept),
        tokens=sum(tokens.count(turn.text) for exchange in kept for turn in exchange.turns),
        next_line=next_line,
    )
