"""First level of search results: ranked events as hits, with snippets around the matches.

A hit usually shows the best observation of its event.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from ...archiver.lines import one_line
from ...core import ids
from ...core.document import StoredChunk
from ...core.errors import InvalidInput, UnknownIds
from ...core.observation import DETAIL_TOKENS, SUMMARY
from ...core.query import LIMIT_MAX, Filters, Grouping, Query
from ...core.results import Hit, Results, Timeline, outcome_of
from ..index.snapshot import Snapshot
from ..query import query_analysis, tokenizer
from ..query.query_analysis import WORD, AnalyzedQuery, unquoted
from ..rank.engine import Engine
from ..rank.fusion import Event, RankedEvents
from .details import Sessions, chunk_observation, exchange_observation, memory_observation
from .representatives import DistinctHits, Representative, Representatives
from .transcript_reader import SessionNames

if TYPE_CHECKING:
    from ...archiver.store import Store, StoredExchange
    from ...archiver.store.exchange_table import ExchangeLocation, StoredItem
    from ...core.conversation import Milliseconds
    from ...core.memory import StoredMemory
    from .zero_results import ZeroResultExplainer

LENGTH = 300
"""Maximum number of characters of a snippet."""
_SEARCHED, _BEFORE = 2_000, 100
"""Maximum number of characters of a text in which words are searched, and of characters shown before a match."""
_SHORT = 2
"""Maximum length of ASCII terms that are too short to be highlighted as matches."""
_NO_WORD_BEFORE = r"(?<![^\W_])"


class SearchTerms(Struct, frozen=True):
    """Terms of a query with their entry counts, and quoted phrases. Phrases in `exact` match literally."""

    terms: Mapping[str, int] = field(default_factory=dict[str, int])
    phrases: tuple[str, ...] = ()
    _forms: re.Pattern[str] | None = None
    exact: tuple[str, ...] = ()
    _known: dict[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Cache of the query terms that a word contains, by word. Hits often contain the same words."""

    @classmethod
    def of(cls, query: AnalyzedQuery, snapshot: Snapshot) -> SearchTerms:
        """Return the terms of a query with the number of entries that contain each term."""
        terms = [term for term in tokenizer.terms(query.text) if len(term) > _SHORT or not term.isascii()]
        return cls(
            {term: snapshot.entries_with(term) for term in terms},
            query.phrases,
            tokenizer.forms(terms) if terms else None,
            query.exact,
        )

    def words(self, text: str) -> dict[str, int]:
        """Return the matching phrases and words in a text, each with its entry count. Phrases have the count 0."""
        phrases = {match: 0 for phrase in self.phrases for match in self._occurrences(phrase, text)}
        quoted = {term for phrase in self.phrases for term in tokenizer.terms(phrase)} if phrases else set[str]()
        found = {word: self._terms_in(word) - quoted for word in self._forms.findall(text)} if self._forms else {}
        return phrases | {word: min(map(self.terms.__getitem__, terms)) for word, terms in found.items() if terms}

    def has_phrase(self, text: str) -> bool:
        """Return whether a text contains any of the phrases."""
        return any(next(self._occurrences(phrase, text), None) for phrase in self.phrases)

    def snippet(self, texts: Sequence[str]) -> str:
        """Return the text around the first phrase, or else around the rarest matching word."""
        whole = " ".join(texts)
        # Phrases are searched in the whole text, words only at the beginning.
        text = one_line(whole, len(whole)) if self.phrases else one_line(whole[: 2 * _SEARCHED], _SEARCHED)
        start = _beginning(text, self._best_position(text))
        shown = one_line(text[start:], LENGTH)
        return f"…{shown}" if start else shown

    def _best_position(self, text: str) -> int:
        """Return the position of the best match in a text."""
        exact = filter(None, (tokenizer.literal_pattern(phrase).search(text) for phrase in self.exact))
        if position := next((match.start() for match in exact), None):
            return position
        found = self.words(text)
        return text.find(min(found, key=found.__getitem__)) if found else 0

    def _occurrences(self, phrase: str, text: str) -> Iterator[str]:
        """Yield the occurrences of a phrase in a text. Without a literal match, yield inexact occurrences."""
        exact = tokenizer.literal_pattern(phrase).findall(text) if phrase in self.exact else []
        return iter(exact) if exact else _inexact_occurrences(phrase, text)

    def _terms_in(self, word: str) -> frozenset[str]:
        if word not in self._known:
            self._known[word] = frozenset(self.terms).intersection(tokenizer.stems(tokenizer.expand(word)))
        return self._known[word]


def _inexact_occurrences(phrase: str, text: str) -> Iterator[str]:
    """Yield the occurrences of a phrase in a text, including other word endings and punctuation."""
    wanted = tokenizer.stems(tokenizer.spaced(phrase))
    matches = (found[0] for found in _forms(phrase).finditer(text)) if wanted else ()
    return (match for match in matches if tokenizer.stems(tokenizer.spaced(match)) == wanted)


def _forms(phrase: str) -> re.Pattern[str]:
    """Return a pattern that matches a phrase with any word endings and any punctuation between words.

    A text can match in only one way, so a long phrase does not cause backtracking.
    """
    words = (
        rf"{_NO_WORD_BEFORE}{_common_prefix(word)}[^\W_]*" if word.isascii() else word for word in WORD.findall(phrase)
    )
    return re.compile(r"[\W_]+".join(words), re.IGNORECASE)


def _common_prefix(word: str) -> str:
    """Return the prefix that all inflected forms of a word share."""
    prefix = word.lower()
    for stem in tokenizer.stems(word):
        prefix = next(prefix[:end] for end in range(len(prefix), -1, -1) if stem.startswith(prefix[:end]))
    return prefix


def _beginning(text: str, position: int) -> int:
    """Return the start of an excerpt around `position`. It is the start of a word if the text contains spaces."""
    early = position - _BEFORE
    if early <= 0:
        return 0
    blank = text.rfind(" ", max(early - _BEFORE, 0), early)
    if blank < 0:
        blank = text.find(" ", early, position)
    return blank + 1 or early


_WEAK = 3
"""Maximum number of nearest hits to show if no hit is relevant."""


class Hits:
    """Search that returns hits, one page at a time."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store, self._engine, self._representatives = store, engine, Representatives(store, engine)
        self._names, self._sessions = SessionNames(store), Sessions(store)

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
        found = self._ranked(query) if query.concepts else RankedEvents([], AnalyzedQuery(""))
        answer, near = self._results(query, found, snippets=snippets)
        if answer.hits or query.cursor:
            return answer
        # Even a query without a known word has nearest vectors.
        nearest = () if found.query.no_known_term else near or self._with_phrases_as_words(query, snippets=snippets)
        return replace(answer, explanation=self._explainer.explain(query, nearest, found.query))

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
        events = [Event.unranked(near) for near in keys]
        representatives = list(self._representatives.of(events, Filters(), len(events)))
        learned = self._store.observations.of_exchange(item.exchange)
        own = [
            Representative(Event.unranked(item.exchange), each)
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
        whole = self._store.summaries.conversation(item.session)
        source = self._store.sources.main(item.session)
        if source is None or item.exchange not in whole:
            return self._store.exchanges.around(item.exchange, count), ""
        place = whole.index(item.exchange)
        return whole[max(0, place - count) : place + count + 1], source.archived

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
            *(Representative(Event.unranked(key), each) for key in keys for each in learned[key]),
        ]
        place = {key: position for position, key in enumerate(keys)}
        representatives.sort(key=lambda each: place[each.event.key])
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

    def _results(self, query: Query, found: RankedEvents, *, snippets: bool) -> tuple[Results, tuple[Hit, ...]]:
        """Return a page of results, and the nearest hits for the zero-result explanation of an empty page."""
        events = _shown(query, found)
        distinct = DistinctHits(self._store, _per_session(query))
        ordered = self._successors_first(events) if query.concepts else self._newest(query.filters)
        page, further = self._page(query, ordered, distinct)
        hits = self._load_hits(page, found.query, query, snippets=snippets)
        repeated_in = {_public_id(each): distinct.repeated_in(each) for each in page}
        hits = tuple(replace(hit, also_in=_joined(hit.also_in, repeated_in.get(hit.id, ()))) for hit in hits)
        if not hits:
            self._store.refuse_unreadable()  # unreadable content may contain matches
        hits = self._after_replacements(hits)
        relevant = found.relevant or query.weak
        answer = Results(
            query,
            hits if relevant else (),
            len(hits) if relevant else 0,
            self._engine.snapshot.lag,
            self._engine.used(query.mode),
            cursor=query_analysis.after(page[-1].event.key, query) if relevant and further else "",
            corrections=found.query.corrections,
            inexact=found.query.inexact,
            relaxed=found.query.relaxed,
            times=found.query.times,
            empty_times=found.query.empty_times,
            newest=self._newest_instant() if found.query.empty_times else None,
            ranking_limit=bool(page and relevant and not further and found.truncated and events == found.events),
        )
        without_words = {_public_id(each) for each in page if not each.event.words}
        nearest = (hit for hit in hits if hit.id not in without_words or not _is_command(hit))
        return answer, tuple(islice(nearest, _WEAK))

    def _successors_first(self, events: Sequence[Event]) -> list[Event]:
        """Return the events, with each superseded memory directly after the memory that superseded it."""
        later, by_key = self._store.memory_edges.successors(), {event.key: event for event in events}
        ordered: dict[int, Event] = {}
        for event in events:
            chain = [event]
            while (key := later.get(chain[-1].key)) in by_key and key not in ordered and by_key[key] not in chain:
                chain.append(by_key[key])
            ordered.update((each.key, each) for each in reversed(chain))
        return [*ordered.values()]

    def _after_replacements(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        """Return the hits, with each replaced observation moved after its replacement.

        The cursors keep their positions, so that the next page is the same.
        """
        keys = {hit.id: key for hit in hits if hit.kind == "observation" and (key := ids.key(hit.id)) is not None}
        places = {key: public for public, key in keys.items()}
        ordered = list(hits)
        for link in self._store.replacements.of_observations(list(places)).values():
            shown = [hit.id for hit in ordered]
            if link.later in places and shown.index(places[link.earlier]) < shown.index(places[link.later]):
                moved = ordered.pop(shown.index(places[link.earlier]))
                ordered.insert(shown.index(places[link.later]), moved)
        return tuple(replace(hit, cursor=at.cursor) for hit, at in zip(ordered, hits, strict=True))

    @cached_property
    def _explainer(self) -> ZeroResultExplainer:
        from .zero_results import ZeroResultExplainer  # few queries need it

        return ZeroResultExplainer(self._store, self._engine, self._count)

    def _count(self, query: Query) -> int:
        """Return the number of hits of a query, up to the maximum of a page."""
        found = self._ranked(query) if query.concepts else RankedEvents([], AnalyzedQuery(""))
        if query.concepts and not (found.relevant or query.weak):
            return 0
        events = _shown(query, found) if query.concepts else self._newest(query.filters)
        every = replace(query, limit=LIMIT_MAX, cursor="")
        return len(self._page(every, events, DistinctHits(self._store, _per_session(query)))[0])

    def _with_phrases_as_words(self, query: Query, *, snippets: bool) -> tuple[Hit, ...]:
        """Return hits for the query without its quotation marks, or no hits for a query without quotation marks."""
        plain = tuple(map(unquoted, query.concepts))
        if plain == query.concepts:
            return ()
        wanted = replace(query, concepts=plain, limit=_WEAK, weak=True)
        answer, _ = self._results(wanted, self._ranked(wanted), snippets=snippets)
        return answer.hits

    def _newest_instant(self) -> Milliseconds | None:
        """Return the instant of the newest event, or None if no event has a date."""
        return next((at for at, _ in self._engine.newest(Filters()) if at), None)

    def _newest(self, filters: Filters) -> Iterator[Event]:
        return (Event.unranked(key) for _, key in self._engine.newest(filters))

    def _ranked(self, query: Query) -> RankedEvents:
        first, *more = query.concepts
        if more:
            return self._engine.find_all(query.concepts, query.mode, query.filters)
        return self._engine.find(first, query.mode, query.filters, also=query.also, here=query.here)

    def _page(self, query: Query, events: Iterable[Event], distinct: DistinctHits) -> tuple[list[Representative], bool]:
        """Return the representatives on a page, and True if another page follows."""
        by_session, limited, left = query.by is Grouping.SESSION, bool(_per_session(query)), iter(events)
        needs_earlier_pages = by_session or limited
        if query.cursor and not needs_earlier_pages:
            _skip_to_cursor(query, (event.key for event in left))
        representatives = self._representatives.of(left, query.filters, query.limit + 1)
        if limited:
            representatives = distinct.of(representatives)
        if len(query.concepts) > 1:  # several concepts are searched only in conversations
            representatives = (each for each in representatives if each.standalone is None)
        if by_session:
            representatives = iter(self._representatives.by_session(representatives, query.filters))
        if needs_earlier_pages and len(query.concepts) == 1:
            representatives = distinct.titled_first(representatives, query.concepts[0])
        if query.cursor and needs_earlier_pages:
            _skip_to_cursor(query, (each.event.key for each in representatives))
        page = list(islice(representatives, query.limit + 1))
        return page[: query.limit], len(page) > query.limit

    def _load_hits(
        self, representatives: Sequence[Representative], analyzed: AnalyzedQuery, query: Query, *, snippets: bool
    ) -> tuple[Hit, ...]:
        locations = self._store.exchanges.locations([each.event.key for each in representatives])
        bare = [each.event.key for each in representatives if each.observation is None and each.standalone is None]
        whole = self._store.exchanges.load(bare)
        repeated_in = self._store.repetitions.of_exchanges([each.event.key for each in representatives])
        terms = SearchTerms.of(analyzed, self._engine.snapshot) if snippets else None
        names = self._names.of_all(location.session for location in locations.values())
        shown: list[Hit] = []
        for each in representatives:
            event = each.event
            if each.standalone is not None:
                hit = _standalone_hit(event, each.standalone)
            elif event.key in locations and (each.observation or event.key in whole):
                location = locations[event.key]
                hit = self._hit(each, location, whole.get(event.key))
                name = names[location.session]
                hit = replace(hit, session_title=name.title, short_session_id=name.short_id)
                if query.by is Grouping.SESSION:
                    hit = self._session_hit(hit, location.session)
            else:
                continue  # another process has just removed the exchange
            parts = event.parts if analyzed.text else ()
            cursor, also_in = query_analysis.after(event.key, query), repeated_in.get(event.key, ())
            hit = replace(hit, parts=parts, more=each.more, cursor=cursor, also_in=also_in)
            shown.append(hit if terms is None else self._with_snippet(hit, event, terms))
        return tuple(shown)

    def _hit(self, each: Representative, location: ExchangeLocation, whole: StoredExchange | None) -> Hit:
        """Return a hit for an observation, or for the exchange `whole` if the representative has no observation."""
        event, learned, match = each.event, each.observation, each.event.best_match
        if learned is not None:
            observation = learned.observation
            start, end = observation.lines or (location.start_line, location.end_line)
        else:
            assert whole is not None
            observation = exchange_observation(whole.exchange)
            start, end = location.start_line, location.end_line
            if match is not None and match.key == event.key:
                start, end = match.start_line, match.end_line
        return Hit(
            id=_public_id(each),
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

    def _session_hit(self, hit: Hit, number: int) -> Hit:
        """Return a hit for the whole session of this hit: with the ID, title, facts and token cost of the session."""
        title, card = hit.session_title or hit.title, self._store.summaries.of_session(number)
        facts, cost = card.observation.facts if card else (), self._sessions.tokens(number)
        return replace(
            hit, id=hit.short_session_id, kind="session", type="session", title=title, facts=facts, tokens=cost
        )

    def _with_snippet(self, hit: Hit, event: Event, terms: SearchTerms) -> Hit:
        """Return the hit with a snippet: the matching text of the exchange, or the fact that matches best."""
        match, snippet = event.best_match, ""
        untitled = hit.kind == "observation" and not (terms.phrases or terms.words(hit.title))
        own = max((hit.snippet, *hit.facts), key=lambda text: len(terms.words(text))) if untitled else ""
        explains = bool(terms.words(own))
        if explains:
            snippet = one_line(own, LENGTH)
        elif match is not None and match.key == event.key:
            snippet = terms.snippet(self._store.exchanges.texts_on(event.key, match.start_line, match.end_line))
        elif terms.phrases and not terms.has_phrase(hit.snippet):
            snippet = one_line(next(filter(terms.has_phrase, hit.facts), ""), LENGTH)
        shown = snippet or hit.snippet
        return replace(hit, snippet=shown, matched=tuple(terms.words(shown)), needs_snippet=explains)


def _shown(query: Query, found: RankedEvents) -> list[Event]:
    """Return the events from which the hits of a query are made."""
    if query.weak:
        return found.events
    return found.matching if query.by is Grouping.SESSION else found.listed


def _per_session(query: Query) -> int:
    """Return the maximum number of hits per session, or 0 for no maximum.

    There is no maximum if the results are sessions, if the query has a session filter, or if it does not have exactly
    one concept.
    """
    if len(query.concepts) != 1 or query.by is Grouping.SESSION or query.filters.sessions:
        return 0
    return query.per_session


def _joined(one: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def _skip_to_cursor(query: Query, keys: Iterator[int]) -> None:
    """Skip the events up to the cursor. Raises `InvalidInput` if the event of the cursor no longer matches."""
    ended = query_analysis.event_of(query)
    if ended not in keys:
        raise query_analysis.invalid("the last result of the previous page no longer matches")


def _is_command(hit: Hit) -> bool:
    """Return whether a hit is a one-word prompt, such as `clear`.

    The vectors of such prompts are near those of meaningless queries, so these prompts are not shown as nearest hits.
    """
    return hit.kind == "exchange" and hit.title.isascii() and len(hit.title.split()) < 2


def _public_id(each: Representative) -> str:
    """Return the public ID of the observation that represents an event, or else of the exchange."""
    return ids.show("observation", each.observation.key) if each.observation else ids.show("exchange", each.event.key)


def _standalone_hit(event: Event, stored: StoredMemory | StoredChunk) -> Hit:
    return _chunk_hit(event, stored) if isinstance(stored, StoredChunk) else _memory_hit(event, stored)


def _memory_hit(event: Event, stored: StoredMemory) -> Hit:
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
