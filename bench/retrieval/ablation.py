"""Ablation: search once per question, and omit one part of the ranking at a time."""

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
from palaver.search.index.text_index import TextEntry, TextIndex
from palaver.search.index.vector_index import Array
from palaver.search.model.embedding import Embedder
from palaver.search.query.query_analysis import AnalyzedQuery
from palaver.search.rank.engine import DEPTH as ENGINE_DEPTH
from palaver.search.rank.engine import adjacent_pairs, completed, weighted_tokens
from palaver.search.rank.fusion import AdjacentTerms, LateInteraction, Weights, fuse

from ..table import table
from .corpus import DEPTH, Corpus, Question

_SHOWN = ("paraphrase", "question", "queries", "all")
"""Kinds of questions in the table."""
_SPLITS = ("train", "test")


class IndexedCorpus(Protocol):
    """Home in which Palaver has indexed a corpus."""

    home: Home

    def item_of(self, store: Store, key: int) -> str | None:
        """Return the item of an event, or None if it was deleted."""
        ...


class Found(NamedTuple):
    """Results of both engines for one question, and the functions that re-rank them."""

    matches: TextMatches
    vectors: VectorMatches
    late_interaction: LateInteraction
    adjacent_terms: AdjacentTerms


class Findings(Struct, frozen=True):
    """Results for one question.

    Attributes:
        every: Results of the complete ranking.
        uncompleted: Results without text scores of events that only vector search found.
        without_context: Results without the context entries of short exchanges.
    """

    every: Found
    uncompleted: Found
    without_context: Found


class Words(Protocol):
    """Function that searches all entries, or the entries of given items."""

    def __call__(self, limit: int, among: Sequence[int] | None = None, /) -> TextMatches:
        """Return the best `limit` entries. `among` restricts the search to these items."""
        ...


Ranking: TypeAlias = Callable[[Findings], tuple[Found, Weights]]


def rankings() -> Mapping[str, Ranking]:
    """Return each ranking by the name of the part that it omits."""
    without = {f"no {name.replace('_', ' ')}": Weights()._replace(**{name: 0.0}) for name in Weights._fields}
    return {
        "nothing": lambda found: (found.every, Weights()),
        **{name: _weighted(weights) for name, weights in without.items()},
        "linear text scores": lambda found: (_with_linear_text_scores(found.every), Weights()),
        "code ranked like prose": lambda found: (_with_code_as_prose(found.every), Weights()),
        "no observations": lambda found: (_without_observations(found.every), Weights()),
        "no context entries": lambda found: (found.without_context, Weights()),
        "text scores not completed": lambda found: (found.uncompleted, Weights()),
    }


def ablation(corpus: Corpus, indexed: IndexedCorpus, embedder: Embedder) -> str:
    """Return a table for one corpus, with a row per ranking, and a column per kind of question and split."""
    kinds = [kind for kind in _SHOWN if any(kind in question.kinds for question in corpus.questions)]
    asked = [question for question in corpus.questions if question.gains]
    with Store.open(indexed.home.database) as store:
        found = list(findings(store, indexed.home, asked, embedder))
        items = {key: indexed.item_of(store, key) for key in _events(found)}
    rows: list[list[str]] = []
    for name, ranking in rankings().items():
        values = [
            _metric_values(question, _ranked(*ranking(each), items), corpus)
            for question, each in zip(asked, found, strict=True)
        ]
        rows.append([name, *(_cell(asked, values, kind, split) for kind in kinds for split in _SPLITS)])
    header = ["without", *(f"{kind}, {split}" for kind in kinds for split in _SPLITS)]
    return f"### {corpus.name}\n\nCells: {' / '.join(corpus.metrics)}.\n\n{table(header, rows)}"


def findings(store: Store, home: Home, asked: Sequence[Question], embedder: Embedder) -> Iterator[Findings]:
    """Yield the results for each question."""
    view = Snapshot(store, Generations(home.index), embedder)
    without_context = TextIndex.make()
    without_context.apply([], _first(indexed_texts.entries(store, store.items.all_keys())))
    for question in asked:
        filters = Filters(projects=(question.project,)) if question.project else Filters()
        analyzed = view.resolve(AnalyzedQuery.of(question.text))
        reading = embedder.read([analyzed.text])
        vector = reading.vectors[0, :]
        tokens = weighted_tokens(analyzed.text, reading, view.idf)
        pairs = adjacent_pairs(analyzed.text, view.idf_of_term)
        rerank = partial(view.late_interaction, tokens, vector), partial(view.adjacent_terms, pairs)
        nearest = VectorMatches.none() if analyzed.phrases else view.nearest(vector, filters, ENGINE_DEPTH)
        semantic_search = partial(_semantic_search, view, vector, nearest)
        uncompleted, every = _both(analyzed, partial(view.text, analyzed, filters), semantic_search, rerank)
        _, plain = _both(analyzed, partial(_text_search, without_context, analyzed, filters), semantic_search, rerank)
        yield Findings(every, uncompleted, plain)


def _semantic_search(view: Snapshot, vector: Array, nearest: VectorMatches, events: Integers) -> VectorMatches:
    return view.of_events(vector, np.unique(np.concatenate([events, nearest.event])))


def _text_search(
    index: TextIndex, analyzed: AnalyzedQuery, filters: Filters, limit: int, among: Sequence[int] | None = None
) -> TextMatches:
    return index.search(analyzed, filters, limit, among=among)


def _both(
    analyzed: AnalyzedQuery,
    words: Words,
    semantic_search: Callable[[Integers], VectorMatches],
    rerank: tuple[LateInteraction, AdjacentTerms],
) -> tuple[Found, Found]:
    """Return the results of both engines before and after the completion of text scores."""
    matches = words(ENGINE_DEPTH)
    vectors = semantic_search(matches.event)
    is_complete = len(matches) < ENGINE_DEPTH or bool(analyzed.phrases)
    completed_matches = matches if is_complete else completed(matches, vectors, words)
    return Found(matches, vectors, *rerank), Found(completed_matches, vectors, *rerank)


def _first(entries: Iterator[TextEntry]) -> Iterator[TextEntry]:
    """Yield the entries without context entries.

    A context entry follows the entry of its exchange and has the same lines.
    """
    last: tuple[int, int, int] | None = None
    for entry in entries:
        place = (entry.key, entry.start_line, entry.end_line)
        if place != last or not entry.source:
            yield entry
        last = place


def _weighted(weights: Weights) -> Ranking:
    return lambda found: (found.every, weights)


def _with_linear_text_scores(found: Found) -> Found:
    """Undo the exponent that the ranking applies to text scores."""
    matches = found.matches
    power = np.where(matches.in_code, 1 / 3, 2 / 3)
    return found._replace(matches=replace(matches, fraction=matches.fraction**power))


def _with_code_as_prose(found: Found) -> Found:
    numbers = found.matches.numbers.copy()
    numbers[-1, :] = 0
    return found._replace(matches=replace(found.matches, numbers=numbers))


def _without_observations(found: Found) -> Found:
    matches, vectors, late_interaction, adjacent_terms = found
    words, own_vectors = matches.key == matches.event, vectors.item == vectors.event
    return Found(
        TextMatches(matches.numbers[:, words], matches.fraction[words]),
        VectorMatches(vectors.rows[:, own_vectors], vectors.similarity[own_vectors]),
        late_interaction,
        adjacent_terms,
    )


def _events(found: Sequence[Findings]) -> set[int]:
    return {
        key
        for each in found
        for matches, vectors, *_ in (each.every, each.uncompleted, each.without_context)
        for key in (*matches.event.tolist(), *vectors.event.tolist())
    }


def _ranked(found: Found, weights: Weights, items: Mapping[int, str | None]) -> list[str]:
    """Return the best distinct items."""
    order = dict.fromkeys(items[event.key] for event in fuse(*found, weights))
    return [item for item in order if item is not None][:DEPTH]


def _metric_values(question: Question, ranked: Sequence[str], corpus: Corpus) -> list[float]:
    return [metric(ranked, question.gains) for metric in corpus.metrics.values()]


def _cell(asked: Sequence[Question], values: Sequence[Sequence[float]], kind: str, split: str) -> str:
    of_kind = [
        each for question, each in zip(asked, values, strict=True) if kind in question.kinds and question.split == split
    ]
    return " / ".join(f"{fmean(column):.3f}" for column in zip(*of_kind, strict=True)) or "-"
