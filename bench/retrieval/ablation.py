"""Ablation: search once, and rank without one part at a time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.query import Filters
from palaver.search.index import indexed_texts
from palaver.search.index.generation import Generations
from palaver.search.index.matches import Integers, TextMatches, VectorMatches
from palaver.search.index.snapshot import Snapshot
from palaver.search.index.text_entry import TextEntry
from palaver.search.index.text_index import TextIndex
from palaver.search.index.vector_segment import Array
from palaver.search.model.embedding import Embedder
from palaver.search.query.query_analysis import AnalyzedQuery
from palaver.search.rank.engine import DEPTH as BROUGHT
from palaver.search.rank.engine import completed
from palaver.search.rank.fusion import AdjacentTerms, LateInteraction, Weights, fuse
from palaver.search.rank.idf_weights import adjacent_pairs, weighted_tokens

from ..table import table
from .corpus import DEPTH, Corpus, Question

_SHOWN = ("paraphrase", "question", "queries", "all")
"""Kinds of questions in the table."""
_HALVES = ("tune", "held")


class Housed(Protocol):
    """Palaver with a corpus in a home."""

    home: Home

    def item_of(self, store: Store, key: int) -> str | None:
        """Return the item of an event, or None if it was deleted."""
        ...


class Found(NamedTuple):
    """Findings of both engines for one question, and the scorers of the re-ranking."""

    matches: TextMatches
    nears: VectorMatches
    compare: LateInteraction
    together: AdjacentTerms


class Findings(Struct, frozen=True):
    """Findings for one question: of all entries, before text scores were completed, and without context entries."""

    every: Found
    unworded: Found
    alone: Found


class Words(Protocol):
    """Text search over all entries, or over given items."""

    def __call__(self, limit: int, among: Sequence[int] | None = None, /) -> TextMatches:
        """Return at most `limit` findings."""
        ...


Ranking: TypeAlias = Callable[[Findings], tuple[Found, Weights]]


def rankings() -> Mapping[str, Ranking]:
    """Return each ranking by the part that it lacks."""
    without = {f"no {name.replace('_', ' ')}": Weights()._replace(**{name: 0.0}) for name in Weights._fields}
    return {
        "nothing": lambda found: (found.every, Weights()),
        **{name: _weighted(weights) for name, weights in without.items()},
        "words in proportion": lambda found: (_in_proportion(found.every), Weights()),
        "code like prose": lambda found: (_as_prose(found.every), Weights()),
        "no observations": lambda found: (_said(found.every), Weights()),
        "no context entries": lambda found: (found.alone, Weights()),
        "words not completed": lambda found: (found.unworded, Weights()),
    }


def ablation(corpus: Corpus, housed: Housed, embedder: Embedder) -> str:
    """Return a table for one corpus: a row per ranking, a column per kind of question and split."""
    kinds = [kind for kind in _SHOWN if any(kind in question.kinds for question in corpus.questions)]
    asked = [question for question in corpus.questions if question.gains]
    with Store.open(housed.home.database) as store:
        found = list(findings(store, housed.home, asked, embedder))
        items = {key: housed.item_of(store, key) for key in _events(found)}
    rows: list[list[str]] = []
    for name, ranking in rankings().items():
        values = [
            _judged(question, _ranked(*ranking(each), items), corpus)
            for question, each in zip(asked, found, strict=True)
        ]
        rows.append([name, *(_cell(asked, values, kind, half) for kind in kinds for half in _HALVES)])
    header = ["lacks", *(f"{kind}, {half}" for kind in kinds for half in _HALVES)]
    return f"### {corpus.name}\n\nCells: {' / '.join(corpus.metrics)}.\n\n{table(header, rows)}"


def findings(store: Store, home: Home, asked: Sequence[Question], embedder: Embedder) -> Iterator[Findings]:
    """Return the findings of each question."""
    view = Snapshot(store, Generations(home.index), embedder)
    alone = TextIndex.make()
    alone.apply([], _first(indexed_texts.entries(store, store.items.all_keys())))
    for question in asked:
        filters = Filters(projects=(question.project,)) if question.project else Filters()
        analyzed = view.resolve(AnalyzedQuery.of(question.text))
        reading = embedder.read([analyzed.text])
        vector = reading.vectors[0, :]
        emphasis = weighted_tokens(analyzed.text, reading, view.idf)
        pairs = adjacent_pairs(analyzed.text, view.idf_of_term)
        rerank = partial(view.late_interaction, emphasis, vector), partial(view.adjacent_terms, pairs)
        nearest = VectorMatches.none() if analyzed.phrases else view.nearest(vector, filters, BROUGHT)
        meaning = partial(_meant, view, vector, nearest)
        unworded, every = _both(analyzed, partial(view.text, analyzed, filters), meaning, rerank)
        _, plain = _both(analyzed, partial(_searched, alone, analyzed, filters), meaning, rerank)
        yield Findings(every, unworded, plain)


def _meant(view: Snapshot, vector: Array, nearest: VectorMatches, events: Integers) -> VectorMatches:
    return view.of_events(vector, np.unique(np.concatenate([events, nearest.event])))


def _searched(
    index: TextIndex, analyzed: AnalyzedQuery, filters: Filters, limit: int, among: Sequence[int] | None = None
) -> TextMatches:
    return index.search(analyzed, filters, limit, among=among)


def _both(
    analyzed: AnalyzedQuery,
    words: Words,
    meaning: Callable[[Integers], VectorMatches],
    rerank: tuple[LateInteraction, AdjacentTerms],
) -> tuple[Found, Found]:
    """Return the findings of both engines, before and after text scores are completed."""
    matches = words(BROUGHT)
    nears = meaning(matches.event)
    is_complete = len(matches) < BROUGHT or bool(analyzed.phrases)
    worded = matches if is_complete else completed(matches, nears, words)
    return Found(matches, nears, *rerank), Found(worded, nears, *rerank)


def _first(entries: Iterator[TextEntry]) -> Iterator[TextEntry]:
    """Remove context entries: they follow the entry of their exchange and have the same lines."""
    last: tuple[int, int, int] | None = None
    for entry in entries:
        place = (entry.key, entry.start_line, entry.end_line)
        if place != last or not entry.source:
            yield entry
        last = place


def _weighted(weights: Weights) -> Ranking:
    return lambda found: (found.every, weights)


def _in_proportion(found: Found) -> Found:
    """Undo the exponent of the text scores."""
    matches = found.matches
    power = np.where(matches.in_code, 1 / 3, 2 / 3)
    return found._replace(matches=replace(matches, fraction=matches.fraction**power))


def _as_prose(found: Found) -> Found:
    numbers = found.matches.numbers.copy()
    numbers[-1, :] = 0
    return found._replace(matches=replace(found.matches, numbers=numbers))


def _said(found: Found) -> Found:
    matches, nears, compare, together = found
    words, meant = matches.key == matches.event, nears.item == nears.event
    return Found(
        TextMatches(matches.numbers[:, words], matches.fraction[words]),
        VectorMatches(nears.rows[:, meant], nears.similarity[meant]),
        compare,
        together,
    )


def _events(found: Sequence[Findings]) -> set[int]:
    return {
        key
        for each in found
        for matches, nears, *_ in (each.every, each.unworded, each.alone)
        for key in (*matches.event.tolist(), *nears.event.tolist())
    }


def _ranked(found: Found, weights: Weights, items: Mapping[int, str | None]) -> list[str]:
    """Return the first items, each once."""
    order = dict.fromkeys(items[event.key] for event in fuse(*found, weights))
    return [item for item in order if item is not None][:DEPTH]


def _judged(question: Question, ranked: Sequence[str], corpus: Corpus) -> list[float]:
    return [metric(ranked, question.gains) for metric in corpus.metrics.values()]


def _cell(asked: Sequence[Question], values: Sequence[Sequence[float]], kind: str, half: str) -> str:
    of_kind = [
        each for question, each in zip(asked, values, strict=True) if kind in question.kinds and question.half == half
    ]
    return " / ".join(f"{fmean(column):.3f}" for column in zip(*of_kind, strict=True)) or "-"
