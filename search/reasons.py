"""Reasons: why nothing was found, and what would find something."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches

from ..archiver.store import Store
from ..core.disclosure import Absence, Filters, Hit, Query, Spelling
from . import documents
from .analysis import label
from .engine import Engine

_CLEAR = 0.5
"""From which share of the best score on something is counted as found."""
_NEAR, _NAMES = 0.75, 3
"""How alike a name must be to be meant, and how many are named."""
_LOOKED_AT = 5
_DATES = ("after", "before")


class Reasons:
    """Asks the engines again, in other ways."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store, self._engine = store, engine

    def why(self, query: Query, weak: Sequence[Hit]) -> Absence:
        """Why a query found nothing, or nothing clearly relevant: `weak` are the nearest then."""
        if weak:
            return Absence(weak=tuple(weak), spelling=tuple(self._spelling(query)))
        earlier, later = self._dates(query)
        return Absence(
            without=tuple(self._without(query)),
            earlier=earlier,
            later=later,
            spelling=tuple(self._spelling(query)),
            unknown=tuple(self._unknown(query.filters.projects)),
        )

    def _without(self, query: Query) -> Iterator[tuple[str, int]]:
        """For each filter how many events there would be without it. A range of dates is one filter."""
        nothing = Filters()
        given = [
            field.name
            for field in fields(Filters)
            if getattr(query.filters, field.name) != getattr(nothing, field.name)
        ]
        dates = [name for name in given if name in _DATES]
        named = ([("dates", dates)] if dates else []) + [(name, [name]) for name in given if name not in _DATES]
        for shown, names in named:
            yield shown, len(self._events(query, _dropped(query.filters, names)))

    def _dates(self, query: Query) -> tuple[int | None, int | None]:
        """The nearest instants outside the range of dates that have something."""
        after, before = query.filters.after, query.filters.before
        if after is None and before is None:
            return None, None
        items = self._store.items.load(self._events(query, _dropped(query.filters, _DATES)))
        at = sorted(item.at for item in items.values() if item.at is not None)
        earlier = [one for one in at if after is not None and one < after]
        later = [one for one in at if before is not None and one >= before]
        return (earlier[-1] if earlier else None), (later[0] if later else None)

    def _events(self, query: Query, filters: Filters) -> list[int]:
        """What is clearly found under these filters."""
        if not query.concepts:
            return [key for _, key in self._engine.newest(filters)]
        first, *more = query.concepts
        if more:
            return [event.key for event in self._engine.find_all(query.concepts, query.mode, filters).events]
        found = self._engine.find(first, query.mode, filters)
        best = found.events[0].score if found.events and found.relevant else 1.0
        return [event.key for event in found.events if event.score >= _CLEAR * best]

    def _spelling(self, query: Query) -> Iterator[Spelling]:
        """For words that stand nowhere, words that are spelled much like them."""
        view = self._engine.snapshot
        for word in dict.fromkeys(" ".join(query.concepts).split()):
            terms = view.terms(word)
            if len(terms) == 1 and terms[0].isalpha() and not view.having(terms[0]):
                bodies = documents.entries(self._store, view.spelled_like(terms[0], _LOOKED_AT))
                known = {one.strip(".,:;!?()[]`'\"").lower() for entry in bodies for one in entry.body.split()}
                if near := get_close_matches(word.lower(), sorted(known), 1, _NEAR):
                    yield Spelling(word, near[0])

    def _unknown(self, projects: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Projects that do not exist, with the nearest names that do."""
        known = self._engine.snapshot.names("project") if projects else set[str]()
        for name in projects:
            if label(name) not in known:
                alike = sorted(one for one in known if "/" not in one or "/" in name)
                holding = [one for one in alike if label(name) in one]
                near = dict.fromkeys([*holding, *get_close_matches(label(name), alike, _NAMES, _NEAR)])
                yield name, tuple(near)[:_NAMES]


def _dropped(filters: Filters, names: Sequence[str]) -> Filters:
    nothing = Filters()
    return replace(filters, **{name: getattr(nothing, name) for name in names})
