"""ZeroResultExplainer: why nothing was found, and what would find something."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations, islice
from operator import attrgetter
from typing import Any

from msgspec.structs import fields, replace

from ...archiver.store import Store
from ...core.query import Filters, Mode, Query
from ...core.results import ConceptHits, Correction, Hit, UnknownName, ZeroResultExplanation
from ..query.query_analysis import AnalyzedQuery
from ..query.spelling import spelled_like
from ..query.tokenizer import label, path_label, terms
from ..rank.engine import Engine

_CLEAR = 0.5
"""From which share of the best score on something is counted as found."""
_NAMES = 3
"""How many names are told instead of one."""
_COUNTED = 2_000
"""Names of which it is asked of each whether anything has it yet."""
_FEW = 5
"""Words of which each is told if it stands nowhere."""
_MOST, _WORDS = 5, 50
"""Names and words that are told about, and words of a query that are looked at."""
_DATES = ("after", "before")
_NAMED = {
    "projects": "project", "agents": "agent", "branches": "branch", "sessions": "session", "concepts": "concept",
    "files": "file",
}  # fmt: skip
"""Filters that name something which may not exist, each with its field in the index."""


class ZeroResultExplainer:
    """Asks the engines again, in other ways."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store, self._engine = store, engine

    def why(self, query: Query, weak: Sequence[Hit], wording: AnalyzedQuery) -> ZeroResultExplanation:
        """Why a query found nothing, or nothing clearly relevant: `weak` are the nearest then, and `wording` is how the
        archive knows its words.
        """
        nowhere = self._nowhere(query, wording)
        undated = _dropped(query.filters, _DATES)
        whenever = self._events(query, undated) if undated != query.filters else []
        earlier, later = self._dates(query.filters, whenever)
        present, apart = self._together(query)
        return ZeroResultExplanation(
            weak=tuple(weak),
            without=tuple(self._without(query, len(whenever))),
            earlier=earlier,
            later=later,
            similar=tuple(islice(self._spelling(wording), _MOST)),
            unknown=tuple(islice(self._unknown(query.filters), _MOST)),
            phrases=tuple(islice(self._unfound(query), _MOST)),
            concepts=present,
            disjoint=apart,
            no_known_term=wording.unheard,
            missing=nowhere,
            without_missing=self._others(query, wording, nowhere) if nowhere else None,
        )

    def _together(self, query: Query) -> tuple[tuple[ConceptHits, ...], tuple[tuple[str, str], ...]]:
        """In how many conversations each of several concepts is, and which two are in none together. There are at most
        five concepts, and so ten pairs, which are looked for only where each concept is somewhere.
        """
        concepts = query.concepts
        if len(concepts) < 2:
            return (), ()
        present = tuple(ConceptHits(one, len(self._having(query, query.filters, one))) for one in concepts)
        if not all(each.conversations for each in present):
            return present, ()
        pairs = combinations(concepts, 2)
        # Both of two are what was asked for, and found nowhere.
        return present, tuple(
            pair for pair in pairs if pair == concepts or not self._having(query, query.filters, *pair)
        )

    def _having(self, query: Query, filters: Filters, *concepts: str) -> list[int]:
        """The best event of each conversation that clearly has all of these concepts."""
        found = self._engine.find_all(concepts, query.mode, filters)
        return [event.key for event in found.events] if found.relevant else []

    def _without(self, query: Query, whenever: int) -> Iterator[tuple[str, int]]:
        """For each filter how many events there would be without it. A range of dates is one filter, without which
        there are as many as `whenever`.
        """
        nothing = Filters()
        given = [
            field.name
            for field in fields(Filters)
            if getattr(query.filters, field.name) != getattr(nothing, field.name)
        ]
        if any(name in _DATES for name in given):
            yield "dates", whenever
        for name in given:
            if name not in _DATES:
                yield name, len(self._events(query, _dropped(query.filters, [name])))

    def _dates(self, filters: Filters, whenever: Sequence[int]) -> tuple[int | None, int | None]:
        """The nearest instants outside the range of dates that have something, of what there is `whenever`."""
        after, before = filters.after, filters.before
        items = self._store.items.load(whenever)
        at = sorted(item.at for item in items.values() if item.at is not None)
        earlier = [one for one in at if after is not None and one < after]
        later = [one for one in at if before is not None and one >= before]
        return (earlier[-1] if earlier else None), (later[0] if later else None)

    def _events(self, query: Query, filters: Filters) -> list[int]:
        """What is clearly found under these filters, by plain scores: what is looked at closely is as much."""
        if not query.concepts:
            return [key for _, key in self._engine.newest(filters)]
        first, *more = query.concepts
        if more:
            return self._having(query, filters, *query.concepts)
        found = self._engine.find(first, query.mode, filters, closely=False)
        best = found.events[0].plain if found.events and found.relevant else 1.0
        return [event.key for event in found.events if event.plain >= _CLEAR * best]

    def _nowhere(self, query: Query, wording: AnalyzedQuery) -> tuple[str, ...]:
        """Those of a few words that stand nowhere. A question of many has some that matter to nobody; to meaning alone
        no word does, and of what is quoted it is told otherwise.
        """
        if query.mode is Mode.VECTOR or wording.phrases or wording.beginnings or len(wording.asked) > _FEW:
            return ()
        having = self._engine.snapshot.having
        return tuple(word for word in wording.asked if (said := terms(word)) and not any(map(having, said)))

    def _others(self, query: Query, wording: AnalyzedQuery, nowhere: Sequence[str]) -> int | None:
        """How many events there would be without some words."""
        others = " ".join(word for word in wording.asked if word not in nowhere)
        if len(query.concepts) > 1 or not terms(others):
            return None
        return len(self._events(replace(query, concepts=(others,)), query.filters))

    def _spelling(self, wording: AnalyzedQuery) -> Iterator[Correction]:
        """For words that stand nowhere, words that are spelled much like them."""
        yield from wording.respelled
        yield from filter(None, map(self._engine.snapshot.respelled, wording.asked[:_WORDS]))

    def _unfound(self, query: Query) -> Iterator[str]:
        """What was quoted and nothing has so that satisfies the filters: each by itself, else those of a concept."""

        def stand(text: str, *phrases: str) -> bool:
            exact = tuple(phrase for phrase in phrases if phrase in known.verbatim)
            return len(self._engine.words(AnalyzedQuery(text, phrases, verbatim=exact), query.filters, 1)) > 0

        for typed in filter(attrgetter("phrases"), map(AnalyzedQuery.of, query.concepts)):
            known = self._engine.quoted(typed)
            alone = [phrase for phrase in typed.phrases if not stand(phrase, phrase)]
            if alone or not stand(typed.text, *typed.phrases):
                yield from alone or typed.phrases

    def _unknown(self, filters: Filters) -> Iterator[UnknownName]:
        """Names that nothing has, with the nearest that something has."""
        view = self._engine.snapshot
        for field, indexed in _NAMED.items():
            wanted: tuple[str, ...] = getattr(filters, field)
            missing = [name for name in wanted if not view.has(_only(field, name))]
            # Of files there may be a hundred thousand.
            known = sorted(view.names(indexed)) if missing else []
            yield from (self._nearest(field, name, known) for name in missing)

    def _nearest(self, field: str, name: str, known: Sequence[str]) -> UnknownName:
        """Names that have this one in them or are spelled much like it, and how many more there are; all of them where
        there are no more. Of thousands some may be counted that nothing has any more.
        """
        files, view = field == "files", self._engine.snapshot
        asked = path_label(name).partition("/")[0] if files else label(name)
        called = sorted({one.partition("/")[0] for one in known}) if files else known
        alike = [one for one in called if "/" not in one or "/" in asked]

        def living(names: Iterable[str]) -> Iterator[str]:
            return (one for one in names if view.has(_only(field, one)))

        if len(alike) <= _COUNTED:
            alike = list(living(alike))
        near = tuple(islice(living(alike), _NAMES + 1))
        if len(near) > _NAMES:
            holding = (one for one in alike if asked in one)
            near = tuple(islice(living(dict.fromkeys(chain(holding, spelled_like(asked, alike)))), _NAMES))
        written = self._written() if field == "projects" else {}
        return UnknownName(field, name, tuple(written.get(one, one) for one in near), len(alike) - len(near))

    def _written(self) -> dict[str, str]:
        """Projects and folders as they are written, by how they are indexed."""
        return {label(each): each for place in self._store.sessions.projects() for each in place}


def _only(field: str, name: str) -> Filters:
    """The filter that lets through what has one name."""
    given: dict[str, Any] = {field: (name,)}
    return replace(Filters(), **given)


def _dropped(filters: Filters, names: Sequence[str]) -> Filters:
    nothing = Filters()
    return replace(filters, **{name: getattr(nothing, name) for name in names})
