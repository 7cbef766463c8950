"""Zero-result explanations: reasons for an empty result, and changes to the query that would produce hits."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, combinations, islice
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from ...archiver.deletion.deletions import explain_deletions
from ...archiver.store import Store
from ...core.query import FIELDS, Comparison, Filters, Mode, Query
from ...core.results import ConceptHits, Correction, Hit, UnknownName, ZeroResultExplanation
from ..query.query_analysis import AnalyzedQuery
from ..query.spelling import similar_spellings
from ..query.tokenizer import label, path_label, terms
from ..rank.engine import Engine

_NAMES = 3
"""Maximum number of similar names suggested for an unknown name."""
_CHECKED = 2_000
"""Maximum number of known names for which every name is checked for entries.

Among more names, only those to suggest are checked.
"""
_FEW = 5
"""Maximum number of words of a query whose missing words are reported."""
_MOST, _WORDS = 5, 50
"""Maximum number of suggestions of each kind in an explanation, and of query words to check for spelling."""
_DATES = tuple(attribute for attribute, field in FIELDS.items() if field.comparison is Comparison.DATE)


class ZeroResultExplainer:
    """Explainer of empty results. It runs more searches to find the reasons."""

    def __init__(self, store: Store, engine: Engine, count: Callable[[Query], int]) -> None:
        """`count` returns the number of hits that a search for a query shows."""
        self._store, self._engine, self._count = store, engine, count

    def explain(self, query: Query, weak: Sequence[Hit], analyzed: AnalyzedQuery) -> ZeroResultExplanation:
        """Return the reasons why a query has no relevant result. `weak` contains the nearest hits."""
        missing = self._missing(query, analyzed)
        undated = _without_filters(query.filters, _DATES)
        without_dates = self._events(query, undated) if undated != query.filters else []
        earlier, later = self._dates(query.filters, without_dates)
        present, apart = self._concept_hits(query)
        return ZeroResultExplanation(
            weak=tuple(weak),
            without=tuple(self._without(query)),
            earlier=earlier,
            later=later,
            similar=tuple(islice(self._spelling(query, analyzed), _MOST)),
            unknown=tuple(islice(self._unknown(query.filters), _MOST)),
            phrases=tuple(islice(self._unmatched_phrases(query), _MOST)),
            concepts=present,
            disjoint=apart,
            no_known_term=analyzed.no_known_term,
            missing=missing,
            without_missing=self._without_words(query, analyzed, missing) if missing else None,
            reword=len(query.concepts) == 1 and not query.also,
            deleted=explain_deletions(self._store, query.filters.projects),
        )

    def _concept_hits(self, query: Query) -> tuple[tuple[ConceptHits, ...], tuple[tuple[str, str], ...]]:
        """Return the number of conversations with each concept, and the pairs of concepts that never occur together.

        Pairs are searched only if every concept occurs.
        """
        concepts = query.concepts
        if len(concepts) < 2:
            return (), ()
        present = tuple(ConceptHits(concept, len(self._having(query, query.filters, concept))) for concept in concepts)
        if not all(hits.conversations for hits in present):
            return present, ()
        pairs = combinations(concepts, 2)
        # If there are only two concepts, the empty result already shows that they do not occur together.
        return present, tuple(
            pair for pair in pairs if pair == concepts or not self._having(query, query.filters, *pair)
        )

    def _having(self, query: Query, filters: Filters, *concepts: str) -> list[int]:
        """Return the best event of each conversation that contains all concepts, or no event if none is relevant."""
        ranked = self._engine.find_all(concepts, query.mode, filters)
        return [event.key for event in ranked.events] if ranked.relevant else []

    def _without(self, query: Query) -> Iterator[tuple[str, int]]:
        """Yield each filter with the number of hits without that filter. Both dates count as one filter."""
        nothing = Filters()
        used = [name for name in FIELDS if getattr(query.filters, name) != getattr(nothing, name)]
        dated = [("dates", _DATES)] if any(name in _DATES for name in used) else []
        for label_, names in [*dated, *((name, (name,)) for name in used if name not in _DATES)]:
            yield label_, self._count(replace(query, filters=_without_filters(query.filters, names)))

    def _dates(self, filters: Filters, events: Sequence[int]) -> tuple[int | None, int | None]:
        """Return the time of the last event before the date range or None, and of the first event after it or None."""
        after, before = filters.after, filters.before
        items = self._store.items.load(events)
        at = sorted(item.at for item in items.values() if item.at is not None)
        earlier = [time for time in at if after is not None and time < after]
        later = [time for time in at if before is not None and time >= before]
        return (earlier[-1] if earlier else None), (later[0] if later else None)

    def _events(self, query: Query, filters: Filters) -> list[int]:
        """Return the events found with these filters."""
        if not query.concepts:
            return [key for _, key in self._engine.newest(filters)]
        first, *further = query.concepts
        if further:
            return self._having(query, filters, *query.concepts)
        ranked = self._engine.find(first, query.mode, filters, also=query.also)
        return [event.key for event in ranked.listed] if ranked.relevant else []

    def _missing(self, query: Query, analyzed: AnalyzedQuery) -> tuple[str, ...]:
        """Return the words of a short query that occur in no entry.

        The result is empty for vector search and for queries with quoted phrases or prefixes.
        """
        if query.mode is Mode.VECTOR or analyzed.phrases or analyzed.prefixes or len(analyzed.words) > _FEW:
            return ()
        entries_with = self._engine.snapshot.entries_with
        return tuple(word for word in analyzed.words if (stems := terms(word)) and not any(map(entries_with, stems)))

    def _without_words(self, query: Query, analyzed: AnalyzedQuery, missing: Sequence[str]) -> int | None:
        """Return the number of hits without the missing words, or None if no searchable words remain."""
        others = " ".join(word for word in analyzed.words if word not in missing)
        if len(query.concepts) > 1 or not terms(others):
            return None
        return self._count(replace(query, concepts=(others,), also=()))

    def _spelling(self, query: Query, analyzed: AnalyzedQuery) -> Iterator[Correction]:
        """Yield corrections of unknown words of the query itself, but not of its other wordings.

        A correction takes about 15 ms, and other wordings contain many unknown words.
        """
        yield from analyzed.corrections
        words = [word for word in analyzed.words if any(word in concept for concept in query.concepts)]
        yield from filter(None, map(self._engine.snapshot.correction, words[:_WORDS]))

    def _unmatched_phrases(self, query: Query) -> Iterator[str]:
        """Yield the quoted phrases that occur in no entry that satisfies the filters.

        If each phrase of a concept occurs, but no entry contains all of them, yield all phrases of the concept.
        """

        def occurs(text: str, *phrases: str) -> bool:
            exact = tuple(phrase for phrase in phrases if phrase in resolved.exact)
            return len(self._engine.words(AnalyzedQuery(text, phrases, exact=exact), query.filters, 1)) > 0

        for query_ in filter(attrgetter("phrases"), map(AnalyzedQuery.of, query.concepts)):
            resolved = self._engine.with_known_phrases(query_)
            alone = [phrase for phrase in query_.phrases if not occurs(phrase, phrase)]
            if alone or not occurs(query_.text, *query_.phrases):
                yield from alone or query_.phrases

    def _unknown(self, filters: Filters) -> Iterator[UnknownName]:
        """Yield the filter values without any entry, together with similar known names."""
        view = self._engine.snapshot
        for attribute, field in FIELDS.items():
            names: tuple[str, ...] = getattr(filters, attribute) if field.unknown else ()
            missing = [name for name in names if not view.has(_only(attribute, name))]
            # Listing the names is slow with a hundred thousand files.
            existing = sorted(view.names(field.name)) if missing else []
            yield from (self._nearest(attribute, name, existing) for name in missing)

    def _nearest(self, field: str, name: str, existing_names: Sequence[str]) -> UnknownName:
        """Return the known names that contain or resemble an unknown name, and the number of other known names.

        If more than `_CHECKED` names are known, the number can include names without entries.
        """
        files, view = field == "files", self._engine.snapshot
        plain = path_label(name).partition("/")[0] if files else label(name)
        names = sorted({candidate.partition("/")[0] for candidate in existing_names}) if files else existing_names
        alike = [candidate for candidate in names if "/" not in candidate or "/" in plain]

        def existing(candidates: Iterable[str]) -> Iterator[str]:
            return (candidate for candidate in candidates if view.has(_only(field, candidate)))

        if len(alike) <= _CHECKED:
            alike = list(existing(alike))
        similar = tuple(islice(existing(alike), _NAMES + 1))
        if len(similar) > _NAMES:
            containing = (candidate for candidate in alike if plain in candidate)
            similar = tuple(islice(existing(dict.fromkeys(chain(containing, similar_spellings(plain, alike)))), _NAMES))
        spellings = self._spellings() if field == "projects" else {}
        return UnknownName(
            field, name, tuple(spellings.get(candidate, candidate) for candidate in similar), len(alike) - len(similar)
        )

    def _spellings(self) -> dict[str, str]:
        """Return the original spelling of each project and folder, by its normalised name in the index."""
        return {label(name): name for names in self._store.sessions.projects() for name in names}


def _only(field: str, name: str) -> Filters:
    """Return a filter for a single name."""
    values: dict[str, Any] = {field: (name,)}
    return replace(Filters(), **values)


def _without_filters(filters: Filters, names: Sequence[str]) -> Filters:
    nothing = Filters()
    return replace(filters, **{name: getattr(nothing, name) for name in names})
