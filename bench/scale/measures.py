"""Cost of a new session, and of each phase of a search, in an existing archive."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from msgspec.structs import replace

from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.query import Filters, Query
from palaver.core.results import Results
from palaver.search.index.generation import Generations
from palaver.search.index.indexer import Indexer
from palaver.search.index.snapshot import Snapshot
from palaver.search.index.text_index import TextIndex
from palaver.search.index.vector_index import Segment, VectorIndex
from palaver.search.model.embedding import Embedder
from palaver.search.present.hits import Hits
from palaver.search.rank.engine import DEPTH, Engine

from ..phases import phases
from ..stopwatch import Took, took
from .archive import DAY, DAYS, ArchiveWriter, FilteredQuery
from .building import published
from .material import Material
from .row import Row

_WARM_UP = 5
_COMPARED = 20
"""Number of questions whose vector results are compared with an exact scan."""
_NONE = Filters()
_T = TypeVar("_T")


def live(folder: Path, material: Material, embedder: Embedder) -> Iterator[Row]:
    """Add a session of fifty exchanges with observations to the archive, and measure its publication."""
    home = Home(folder / "home")
    with Store.open(home.database) as store:
        with store.transaction():
            ArchiveWriter(material, embedder.name).session(store, store.sessions.count())
        indexer = Indexer(store, Generations(home.index), embedder)
        yield Row.of_work("publish 100 changed items", took(indexer.publish))
    yield Row.of_peak("publish 100 changed items, peak memory")


def ask(folder: Path, questions: int, material: Material, embedder: Embedder) -> Iterator[Row]:
    """Measure at least ten questions: whole searches, the phases of searches, and the recall of vector search."""
    home, asked = Home(folder / "home"), list(ArchiveWriter(material, embedder.name).questions(questions))
    with Store.open(home.database) as store:
        yield from _searched(home, store, embedder, asked)
        yield Row.of_peak("peak memory of the searching process")
        yield from _recall(home, Snapshot(store, Generations(home.index), embedder), embedder, asked[:_COMPARED])


def _searched(home: Home, store: Store, embedder: Embedder, questions: Sequence[FilteredQuery]) -> Iterator[Row]:
    queries = {
        "no filter": [Query((one.words,)) for one in questions],
        "half the dates": [
            Query((one.words,), filters=Filters(after=one.filters.after, before=one.filters.before))
            for one in questions
        ],
        "all filters": [Query((one.words,), filters=one.filters) for one in questions],
    }

    def search() -> Callable[[Query], Results]:
        # A new engine for each row, because an engine caches the vectors of queries.
        return partial(Hits(store, Engine.of(store, Generations(home.index), embedder)).search, snippets=False)

    for name, wanted in queries.items():
        yield Row.of_calls(f"hybrid search, {name}", _each(search(), wanted))
    yield Row.of_calls("hybrid search, repeated filters", _each(search(), _with_equal_filters(queries["all filters"])))
    for name in ("no filter", "all filters"):
        for phase, taken in phases(store, home, embedder, queries[name]).items():
            yield Row.of_calls(f"  {phase}, {name}", taken)


def _recall(home: Home, view: Snapshot, embedder: Embedder, questions: Sequence[FilteredQuery]) -> Iterator[Row]:
    """Yield the recall of vector search compared with an exact scan, with increasingly strict filters."""
    index = published(home)
    text = TextIndex.open(index.text)
    every = VectorIndex([replace(Segment.open(path), graph=None) for path in index.vectors.iterdir()])
    vectors = embedder.embed([one.words for one in questions])
    for name, days in (("100 %", 0), ("50 %", DAYS // 2), ("10 %", DAYS // 10), ("1 %", DAYS // 100)):
        shares: list[float] = []
        for one, vector in zip(questions, vectors, strict=True):
            after = one.filters.after or 0
            filters = Filters(after=after, before=after + days * DAY) if days else _NONE
            keys = text.keys(filters)
            flags = np.zeros(1 + keys.max(initial=0), dtype=bool)
            flags[keys] = True
            found, exact = view.nearest(vector, filters, DEPTH), every.nearest(vector, DEPTH, flags)
            shares.append(float(np.isin(exact.item, found.item).mean()) if len(exact) else 1.0)
        yield Row(f"  recall@{DEPTH} of vector search, {name} of entries pass the filter", (sum(shares) / len(shares),))


def _with_equal_filters(queries: Sequence[Query]) -> list[Query]:
    return [replace(query, filters=queries[0].filters) for query in queries]


def _each(ask: Callable[[_T], object], questions: Sequence[_T]) -> list[Took]:
    """Return the times of all questions except the warm-up, which is the last question."""
    for question in questions[-_WARM_UP:]:
        ask(question)
    return [took(partial(ask, question)) for question in questions[:-_WARM_UP]]
