"""The search engine: one query in, ranked events out."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, partial
from math import inf
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.errors import ModelUnavailable
from ...core.memo import Memo
from ...core.query import Filters, Mode
from ...core.results import TimeExpression
from ..index.generation import Generations
from ..index.matches import Fractions, TextMatches, VectorMatches, among, distinct
from ..index.snapshot import Snapshot
from ..index.vector_segment import Array
from ..model.embedder import load, model_of
from ..model.embedding import Embedder, TextEmbeddings
from ..query.query_analysis import AnalyzedQuery
from .fusion import Compare, Event, OfPeriod, gather, joined
from .relevance import PRESENT_MEANING, PRESENT_WORDS, RankedEvents, Rest
from .token_weights import weighted_tokens

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from .exact_phrases import Quotations

DEPTH = 200
"""Entries and vectors that each engine brings to the fusion."""
_COMPLETED = 50
"""Events that meaning alone found, the best of them, whose words are looked up."""
_DEEPEST = 12_800
"""How many each engine brings at most to find the conversations that have every one of several concepts."""
_SUMMARY = 0.5
"""Weight of the words of a session's summary: it repeats those of all observations, and stands with one exchange."""
_WORDED = PRESENT_WORDS
"""From which fraction on an entry has enough of the words of a query, all of which stand in the archive."""
_FLOOR, _BRIEF = 0.075, 0.25
"""The plain score from which a list is relevant, and how much more a brief query needs: who types three words has them
from what they look for, of a whole sentence most words may be others. Chosen on the tuning half of the questions about
coding sessions, where no answer among the first five is lost (bench/RESULTS.md). A close look says what is nearest, not
whether it is near: counting it, fewer questions without an answer would be told from the others, so a list that is not
relevant has none. Where every word stands somewhere in the archive and an entry has `_WORDED` of them, the list is
relevant, whatever the score.
"""
_EMBED_ANEW = "Run `palaver archive` to embed everything anew."


_REMEMBERED = 64
"""Queries whose vectors are kept."""
_NEWEST, _FURTHER = 2_000, 8
"""Entries that are looked at first where no words are given, and how many times more wherever entries do not do."""


_ALL = _FURTHER * DEPTH
"""Entries that hardly any words find more of among some items."""

Words: TypeAlias = Callable[[int, Sequence[int]], TextMatches]
"""Finds the best entries of some items, as many as it is told."""
Place: TypeAlias = tuple[int, int]
"""The number of a conversation and 0; of what was said in none, 0 and its key."""


class Engine:
    """Searches one store. Loads the model at the first query that needs it; without it, words alone answer."""

    def __init__(self, store: Store, generations: Generations, embedder: Embedder, *, dated: bool = True) -> None:
        """Periods in a query are words, too, where it is not `dated`."""
        self._store, self._embedder, self._dated = store, embedder, dated
        self._snapshot = Snapshot(store, generations, embedder)
        self._meant = Memo[tuple[str, str], TextEmbeddings](_REMEMBERED)
        """What the last queries mean, by model and text: the next page of one is the same query again."""
        self.unavailable: ModelUnavailable | None = None
        """Why meaning could not be searched the last time; None when it was."""

    @property
    def lag(self) -> int:
        """Changes that the published index does not hold yet; they are searched all the same."""
        return self._snapshot.lag

    def searched(self, mode: Mode) -> tuple[str, ...]:
        """The engines that answered the last query."""
        wanted = (Mode.TEXT, Mode.VECTOR) if mode is Mode.BOTH else (mode,)
        return tuple(str(engine) for engine in wanted if engine is Mode.TEXT or self.unavailable is None)

    def allowed(self, filters: Filters, keys: Sequence[int]) -> AbstractSet[int]:
        """Those of these items that satisfy the filters."""
        return self._snapshot.allowed(filters, keys)

    def find(
        self, concept: str, mode: Mode, filters: Filters, depth: int | None = None, *, closely: bool = True
    ) -> RankedEvents:
        """Events that match, best first, and how the words stand in the archive. Each engine brings `depth` entries or
        vectors; `DEPTH` where none is given. Nothing is looked at `closely` for whoever only counts.
        """
        self._snapshot.refresh()
        depth, wording = depth or DEPTH, self._wording(concept, mode)
        matches, nears, rest = self._found(wording, mode, filters, depth)
        return self._fused(wording, mode, matches, nears, rest, closely=closely)

    def _fused(
        self,
        wording: AnalyzedQuery,
        mode: Mode,
        matches: TextMatches,
        nears: VectorMatches,
        rest: Rest,
        *,
        closely: bool = True,
    ) -> RankedEvents:
        """What both engines found as one list, which is looked at closely where it is relevant."""
        # What stands as it was quoted is what was asked for.
        floor = _FLOOR + _BRIEF * wording.brevity if self._is_both(mode) and not wording.phrases else 0.0
        worded = _WORDED if wording.complete else inf
        enough = (0.0 if matches.fraction.max(initial=0.0) >= worded else floor) if closely else inf
        return RankedEvents(self._ranked(wording, mode, matches, nears, enough), wording, floor, worded, rest)

    def _is_both(self, mode: Mode) -> bool:
        """Whether words and meaning are asked for, and the model is there."""
        return mode is Mode.BOTH and self.unavailable is None

    def _ranked(
        self, wording: AnalyzedQuery, mode: Mode, matches: TextMatches, nears: VectorMatches, at_least: float
    ) -> list[Event]:
        """What both engines found, best first; looked at closely where one has a plain score of `at_least` this."""
        summaries = self._store.summaries.among(matches.key.tolist())
        return gather(
            matches.weighted(summaries, _SUMMARY),
            nears,
            self._compare(wording, nears),
            partial(self._snapshot.together, wording.text),
            at_least=at_least,
            waiting=self._snapshot.waiting(matches if self._is_both(mode) else TextMatches.none(), nears),
            of_period=self._of_period(wording),
        )

    def _wording(self, concept: str, mode: Mode) -> AnalyzedQuery:
        """What was typed, as the archive knows it; to vectors a name is only words. A period of which there is nothing,
        whatever the filters are, is words like the others.
        """
        wording = AnalyzedQuery.of(concept, dated=self._dated)
        if vacant := tuple(each for each in wording.occasions if not self._snapshot.has(_within(each))):
            wording = replace(AnalyzedQuery.of(concept), vacant=vacant)
        wording = self.quoted(wording)
        return wording if mode is Mode.VECTOR else self._snapshot.settled(wording)

    def _of_period(self, wording: AnalyzedQuery) -> OfPeriod | None:
        """What tells the events of the period that was named; None where none was."""
        return partial(self._snapshot.passing, _within(wording.occasions[0])) if wording.occasions else None

    def quoted(self, wording: AnalyzedQuery) -> AnalyzedQuery:
        """What was typed, and how the archive has what is quoted in it."""
        return self._quotations.known(wording) if wording.phrases else wording

    def words(
        self, wording: AnalyzedQuery, filters: Filters, limit: int, items: Sequence[int] | None = None
    ) -> TextMatches:
        """Entries by words, and by what is quoted; of these items alone, where some are given."""
        found = self._quotations if wording.phrases else self._snapshot
        return found.text(wording, filters, limit, items)

    def worded(self, wording: AnalyzedQuery, mode: Mode, filters: Filters, depth: int) -> TextMatches:
        """At least `depth` entries by words, where there are as many; where few satisfy the filters all there are, so
        that nothing is left for `completed` to ask for.
        """
        narrow = mode is Mode.BOTH and self._snapshot.is_narrow(filters)
        return self.words(wording, filters, max(depth, _ALL) if narrow else depth)

    def further(self, wording: AnalyzedQuery, filters: Filters, found: TextMatches, depth: int) -> Words:
        """What finds the words of some items: among what was found already, where that is all there is."""
        if depth < len(found) < _ALL:
            return lambda _, items: found.of(items)
        return partial(self._snapshot.text, wording, filters)

    @cached_property
    def _quotations(self) -> "Quotations":
        from .exact_phrases import Quotations  # most queries quote nothing

        return Quotations(self._store, self._snapshot)

    def newest(self, filters: Filters) -> Iterator[tuple[int, int]]:
        """All events that satisfy the filters as (instant, event), newest first, undated ones last; looked up as far as
        they are asked for.
        """
        self._snapshot.refresh()
        depth, given, complete = _NEWEST, 0, False
        while not complete:
            found, complete = self._snapshot.newest(filters, depth)
            yield from found[given:]
            depth, given = _FURTHER * depth, len(found)

    @property
    def snapshot(self) -> Snapshot:
        """The view of the archive that the last search had."""
        return self._snapshot

    def find_all(self, concepts: Sequence[str], mode: Mode, filters: Filters) -> RankedEvents:
        """For each conversation in which every concept is present its best event, by the mean of what the concepts
        score there; what was said in no conversation has them all by itself.
        """
        found = [self.find(concept, mode, filters) for concept in concepts]
        places = [self._by_place(each) for each in found]
        rarest = min(range(len(found)), key=lambda number: (found[number].rest.present, len(places[number])))
        found[rarest] = self._deeply(concepts[rarest], mode, filters, found[rarest])
        within = places[rarest] = self._by_place(found[rarest]) | places[rarest]
        for number, each in enumerate(found):
            if number != rarest and each.rest.present:
                again = self._within(within, each.wording, mode, filters, closely=each.relevant)
                found[number] = replace(each, rest=again.rest)
                places[number] = self._by_place(again) | places[number]
        events = [joined(concepts, [of_one[place] for of_one in places]) for place in set(within).intersection(*places)]
        respelled = tuple(word for each in found for word in each.wording.respelled)
        reworded = tuple(phrase for each in found for phrase in each.wording.reworded)
        loosened = tuple(phrase for each in found for phrase in each.wording.loosened)
        occasions = tuple(one for each in found for one in each.wording.occasions)
        vacant = tuple(one for each in found for one in each.wording.vacant)
        return RankedEvents(
            sorted(events, key=lambda event: (-event.score, event.key)),
            AnalyzedQuery(
                " ".join(each.wording.text for each in found),
                respelled=respelled,
                reworded=reworded,
                loosened=loosened,
                occasions=occasions,
                vacant=vacant,
            ),
            floor=0.0 if all(each.relevant for each in found) else inf,
            rest=next((each.rest for each in found if each.rest.present), Rest()),
        )

    def _deeply(self, concept: str, mode: Mode, filters: Filters, found: RankedEvents) -> RankedEvents:
        """As much as it takes to know every place of a concept, and no more than `_DEEPEST`."""
        depth = DEPTH
        while found.rest.present and depth < _DEEPEST:
            depth *= _FURTHER
            found = self.find(concept, mode, filters, depth)
        return found

    def _within(
        self, places: Iterable[Place], wording: AnalyzedQuery, mode: Mode, filters: Filters, *, closely: bool
    ) -> RankedEvents:
        """What the words of a concept find in these places, which are looked at as a whole; `closely` where what it
        found anywhere was, as scores with and without a close look are of two scales.
        """
        sessions, loose = {session for session, _ in places if session}, [key for _, key in places if key]
        items = [*self._store.items.of_sessions(sorted(sessions)), *loose]
        matches, nears = TextMatches.none(), VectorMatches.none()
        if mode is not Mode.VECTOR or wording.phrases:
            matches = _every(partial(self.words, wording, filters, items=items), _DEEPEST)
        if mode is not Mode.TEXT and self.unavailable is None:
            events = matches.event if wording.phrases else np.array(items, dtype=np.int64)
            nears = self._snapshot.of_events(self._vector(wording.text), distinct(events)[0])
            nears = nears.of(self._snapshot.allowed(filters, items)) if filters else nears
        rest = Rest(_last(matches.fraction, _DEEPEST))
        matches = TextMatches.none() if mode is Mode.VECTOR else matches
        return RankedEvents(self._ranked(wording, mode, matches, nears, 0.0 if closely else inf), wording, rest=rest)

    def nearest(self, text: str, filters: Filters, limit: int, vector: Array | None = None) -> VectorMatches:
        """The vectors nearest to a text, best first; none where the model is missing. What changed since the index was
        published is among them whether it satisfies the filters or not. `vector` is the text's, where the caller has it
        from `model` already.
        """
        self._snapshot.refresh()
        try:
            meant = self._model().embed([text])[0, :] if vector is None else vector
        except ModelUnavailable:
            return VectorMatches.none()
        return self._snapshot.near(meant, filters, limit)

    @property
    def model(self) -> str:
        """The name of the model that made the vectors."""
        return self._snapshot.model

    def _by_place(self, found: RankedEvents) -> dict[Place, Event]:
        """The best event of each place in which the concept is present. What has its phrases has it."""
        present = [
            event
            for event in found.events
            if found.wording.phrases or event.words >= PRESENT_WORDS or event.meaning >= PRESENT_MEANING
        ]
        items = self._store.items.load([event.key for event in present])
        best: dict[Place, Event] = {}
        for event in present:
            session = items[event.key].session if event.key in items else 0
            best.setdefault((session, 0 if session else event.key), event)
        return best

    def _found(
        self, wording: AnalyzedQuery, mode: Mode, filters: Filters, depth: int
    ) -> tuple[TextMatches, VectorMatches, Rest]:
        """What both engines find, and what they leave out."""
        meant = None if mode is Mode.TEXT else self._begun(wording.text)
        sought = mode is not Mode.VECTOR or wording.phrases
        every = self.worded(wording, mode, filters, depth) if sought else TextMatches.none()
        having = every.first(depth)
        rest = Rest(_last(having.fraction, depth))
        # To mode `vector` words tell where phrases stand, and count nothing.
        matches = TextMatches.none() if mode is Mode.VECTOR else having
        if meant is None:
            return matches, VectorMatches.none(), rest
        self.unavailable = None
        try:
            vector = meant()
        except ModelUnavailable as problem:
            self.unavailable = problem
            return matches, VectorMatches.none(), rest
        # Where phrases are wanted, what has these is compared and nothing else.
        nearest = VectorMatches.none() if wording.phrases else self._snapshot.nearest(vector, filters, depth)
        # All vectors of the events found, so that every event is fully compared.
        events, _ = distinct(np.concatenate([having.event, nearest.event]))
        nears = self._snapshot.of_events(vector, events)
        if mode is Mode.BOTH and len(matches) == depth:
            matches = completed(wording, matches, nears, self.further(wording, filters, every, depth))
        return matches, nears, replace(rest, meaning=_last(nearest.similarity, depth))

    def _compare(self, wording: AnalyzedQuery, nears: VectorMatches) -> Compare | None:
        """What compares texts token by token with what was typed; None where no vectors were compared."""
        return partial(self._closeness, wording.text) if len(nears) else None

    def _closeness(self, text: str, nears: VectorMatches) -> Fractions:
        query = weighted_tokens(text, self._meaning(text), self._snapshot.rarity)
        return self._snapshot.closeness(query, self._vector(text), nears)

    def _begun(self, text: str) -> Callable[[], Array]:
        """What gives `_vector`, which is worked out while words are looked for: neither holds Python's lock. The first
        query loads the model, which does, and a process that asks once needs no thread.
        """
        if not self._meant or (self._snapshot.model, text) in self._meant:
            return partial(self._vector, text)
        return self._beside.submit(self._vector, text).result

    @cached_property
    def _beside(self) -> "ThreadPoolExecutor":
        """One thread that lives on: to start one would take longer than it saves."""
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(1)

    def _vector(self, text: str) -> Array:
        """What a query means. Raises `ModelUnavailable`."""
        return self._meaning(text).vectors[0, :]

    def _meaning(self, text: str) -> TextEmbeddings:
        """What a query means, and what each of its tokens does. Raises `ModelUnavailable`."""
        return self._meant.made((self._model().name, text), self._embed)

    def _embed(self, meant: tuple[str, str]) -> TextEmbeddings:
        return self._model().read([meant[1]])

    def _model(self) -> Embedder:
        """The model that made the vectors, be it another than the one that new ones are made with."""
        wanted = self._snapshot.model
        if self._embedder.name != wanted:
            self._embedder = load(model_of(wanted))
        if self._embedder.name != wanted:
            raise ModelUnavailable(f"the vectors are of {wanted}, which this Palaver no longer has", hint=_EMBED_ANEW)
        return self._embedder


def completed(wording: AnalyzedQuery, matches: TextMatches, nears: VectorMatches, words: Words) -> TextMatches:
    """With the words of the events that meaning alone found: whatever can be among the first is fully compared."""
    if wording.phrases:
        return matches
    unread = nears.where(~among(nears.event, np.sort(matches.event)))
    best = list(dict.fromkeys(unread.best(len(unread)).event.tolist()))[:_COMPLETED]
    items, _ = distinct(unread.item[among(unread.event, np.array(sorted(best), dtype=np.int64))])
    others = _every(lambda limit: words(limit, items.tolist()))
    return matches.and_also(others, len(matches) + len(others))


def _within(occasion: TimeExpression) -> Filters:
    return Filters(after=occasion.after, before=occasion.before)


def _every(words: Callable[[int], TextMatches], most: int | None = None) -> TextMatches:
    """Everything that is found, and no more than `most`: as many entries at first as nearly always do."""
    limit = _ALL
    while len(found := words(limit)) == limit and limit != most:
        limit = limit * _FURTHER if most is None else min(most, limit * _FURTHER)
    return found


def _last(values: Fractions, depth: int) -> float | None:
    """The last of what an engine brought, best first, where it brought as much as it may; else None."""
    return float(values[-1]) if len(values) == depth else None
