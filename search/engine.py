"""The search engine: one query in, ranked events out."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from ..archiver.store import Store
from ..core.disclosure import Filters, Mode
from ..core.errors import ModelUnavailable
from .embedder import Embedder, load, model_of
from .findings import Matches, Nears, Numbers, distinct
from .fusion import Event, gather, joined
from .generation import Generations
from .segment import Array
from .snapshot import Snapshot
from .wording import Wording

_DEPTH = 200
"""Entries and vectors that each engine brings to the fusion; what one brings the other completes."""
_PRESENT_WORDS, _PRESENT_MEANING = 0.25, 0.4
"""From which fraction of words, or which cosine, on a concept counts as present in a conversation. All its words, each
said once, make a fraction of 0.45 in a window of average length and 0.25 in one three times as long.
"""
_TOGETHER = _PRESENT_WORDS
"""From which fraction on the words of a query stand together."""
_FLOOR, _BRIEF = 0.075, 0.12
"""The score from which a list is relevant, and how much more a brief query needs: who types three words has them from
what they look for, of a whole sentence most words may be others. Chosen on the tuning half of the questions about
coding sessions, where no answer among the first five is lost (bench/RESULTS.md). Words that all stand together are
relevant, whatever the score.
"""
_EMBED_ANEW = "Run `palaver archive` to embed everything anew."


_REMEMBERED = 64
"""Queries whose vectors are kept."""
_NEWEST, _FURTHER = 2_000, 8
"""Entries that are looked at first where no words are given, and how many times more wherever these do not do."""


@dataclass(frozen=True, slots=True)
class Found:
    """What one search found. `relevant` is False where even the best event is not clearly about the query."""

    events: list[Event]
    wording: Wording
    relevant: bool = True


class Engine:
    """Searches one store. Loads the model at the first query that needs it; without it, words alone answer."""

    def __init__(self, store: Store, generations: Generations, embedder: Embedder) -> None:
        self._store, self._embedder = store, embedder
        self._snapshot = Snapshot(store, generations, embedder)
        self._meant: dict[tuple[str, str], Array] = {}
        """The vectors of the last queries, by model and text: the next page of one is the same query again."""
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

    def search(self, concept: str, mode: Mode, filters: Filters) -> list[Event]:
        """Events that match, best first."""
        return self.find(concept, mode, filters).events

    def find(self, concept: str, mode: Mode, filters: Filters) -> Found:
        """Events that match, best first, and how the words stand in the archive."""
        self._snapshot.refresh()
        wording = Wording.of(concept)
        if mode is not Mode.VECTOR:
            wording = self._snapshot.settled(wording)
        matches, nears = self._found(wording, mode, filters)
        if mode is Mode.BOTH:
            matches = self._worded(wording, filters, matches, nears)
        events = gather(matches, nears)
        both = mode is Mode.BOTH and self.unavailable is None
        best = events[0].score if events else 0.0
        together = wording.complete and matches.fraction.max(initial=0.0) >= _TOGETHER
        relevant = not both or together or best >= _FLOOR + _BRIEF * wording.brevity
        return Found(events, wording, relevant)

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

    def find_all(self, concepts: Sequence[str], mode: Mode, filters: Filters) -> Found:
        """For each conversation in which every concept is present its best event, by the mean of what the concepts
        score there; what was said in no conversation has them all by itself.
        """
        found = [self.find(concept, mode, filters) for concept in concepts]
        places = [self._by_place(each.events) for each in found]
        events = [
            joined(concepts, [of_one[place] for of_one in places]) for place in set(places[0]).intersection(*places[1:])
        ]
        respelled = tuple(term for each in found for term in each.wording.respelled)
        return Found(
            sorted(events, key=lambda event: (-event.score, event.key)),
            Wording(" ".join(each.wording.text for each in found), respelled=respelled),
            relevant=all(each.relevant for each in found),
        )

    def nearest(self, text: str, filters: Filters, limit: int, vector: Array | None = None) -> Nears:
        """The vectors nearest to a text, best first; none where the model is missing. What changed since the index was
        published is among them whether it satisfies the filters or not. `vector` is the text's, where the caller has it
        from `model` already.
        """
        self._snapshot.refresh()
        try:
            meant = self._model().embed([text])[0, :] if vector is None else vector
        except ModelUnavailable:
            return Nears.none()
        return self._snapshot.near(meant, filters, limit)

    @property
    def model(self) -> str:
        """The name of the model that made the vectors."""
        return self._snapshot.model

    def _by_place(self, events: Sequence[Event]) -> dict[tuple[int, int], Event]:
        """The best event of each conversation in which the concept is present, by its number; what was said in none is
        a place of its own, by its key.
        """
        present = [event for event in events if event.words >= _PRESENT_WORDS or event.meaning >= _PRESENT_MEANING]
        items = self._store.items.load([event.key for event in present])
        best: dict[tuple[int, int], Event] = {}
        for event in present:
            session = items[event.key].session if event.key in items else 0
            best.setdefault((session, 0 if session else event.key), event)
        return best

    def _found(self, wording: Wording, mode: Mode, filters: Filters) -> tuple[Matches, Nears]:
        """What both engines find.

        One after the other: with a thread for each the median stayed, and the slowest took twice as long.
        """
        if mode is Mode.TEXT:
            return self._snapshot.text(wording, filters, _DEPTH), Nears.none()
        if mode is Mode.VECTOR:
            return Matches.none(), self._compared(wording, filters, Matches.none().event)
        matches = self._snapshot.text(wording, filters, _DEPTH)
        return matches, self._compared(wording, filters, matches.event)

    def _meant_by(self, wording: Wording, filters: Filters) -> tuple[Array, Nears]:
        """The vector of what was typed, and those nearest to it; none of them where phrases are wanted: what has these
        is compared and nothing else. Raises `ModelUnavailable`.
        """
        vector = self._vector(wording.text)
        return vector, Nears.none() if wording.phrases else self._snapshot.nearest(vector, filters, _DEPTH)

    def _compared(self, wording: Wording, filters: Filters, events: Numbers) -> Nears:
        """The nearest vectors, and all others of their events and of these, so that every event is fully compared."""
        self.unavailable = None
        try:
            vector, nearest = self._meant_by(wording, filters)
        except ModelUnavailable as problem:
            self.unavailable = problem
            return Nears.none()
        return self._snapshot.of_events(vector, distinct(np.concatenate([events, nearest.event]))[0])

    def _vector(self, text: str) -> Array:
        """What a query means. Raises `ModelUnavailable`."""
        model = self._model()
        if (model.name, text) not in self._meant:
            if len(self._meant) >= _REMEMBERED:
                self._meant.clear()
            self._meant[model.name, text] = model.embed([text])[0, :]
        return self._meant[model.name, text]

    def _worded(self, wording: Wording, filters: Filters, matches: Matches, nears: Nears) -> Matches:
        """With the words of the events that meaning alone found, so that every event is fully compared."""
        if len(matches) < _DEPTH or wording.phrases:
            return matches
        items, _ = distinct(nears.item[~np.isin(nears.event, matches.event)])
        return matches.and_also(self._snapshot.text(wording, filters, _DEPTH, items.tolist()), 2 * _DEPTH)

    def _model(self) -> Embedder:
        """The model that made the vectors, be it another than the one that new ones are made with."""
        wanted = self._snapshot.model
        if self._embedder.name != wanted:
            self._embedder = load(model_of(wanted))
        if self._embedder.name != wanted:
            raise ModelUnavailable(f"the vectors are of {wanted}, which this Palaver no longer has", hint=_EMBED_ANEW)
        return self._embedder
