"""What one archive takes to build and to ask, part by part."""

import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import TypeVar

import numpy as np

from palaver.archiver.store import Store
from palaver.core.disclosure import Filters, Query, Results
from palaver.core.home import Home
from palaver.search.embedder import Embedder
from palaver.search.engine import DEPTH, Engine
from palaver.search.generation import Generation, Generations
from palaver.search.hits import Hits
from palaver.search.indexer import Indexer
from palaver.search.snapshot import Snapshot
from palaver.search.text_index import TextIndex
from palaver.search.vector_index import VectorIndex

from ..phases import phases
from .archive import DAY, DAYS, Asked, Maker
from .material import Material

_WARM_UP = 5
_COMPARED = 20
"""Questions that are compared with an exact scan."""
_NONE = Filters()
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Row:
    """One measure: a median and a 99th percentile, or one value alone. `unit` is ms, s or MB."""

    name: str
    value: float
    p99: float | None = None
    unit: str = "ms"


def measures(
    folder: Path, items: int, questions: int, progress: Callable[[int], None], material: Material, embedder: Embedder
) -> Iterator[Row]:
    """Build an archive of so many items in an empty folder, then ask it so many questions, at least ten."""
    home = Home(folder)
    home.make()
    maker = Maker(material, embedder.name)
    with Store.create(home.database) as store:
        yield Row("fill the store", _seconds(lambda: maker.fill(store, items, progress)), unit="s")
        indexer = Indexer(store, Generations(home.index), embedder)
        yield Row("build the index", _seconds(indexer.publish), unit="s")
        _change(store, maker)
        yield Row("publish 100 changed items", _seconds(indexer.publish), unit="s")
        yield Row(
            "index on disk", sum(path.stat().st_size for path in _published(home).folder.rglob("*")) / 1e6, unit="MB"
        )
        yield Row("store on disk", home.database.stat().st_size / 1e6, unit="MB")
        yield from asked(home, store, embedder, list(maker.questions(questions)))
    yield Row("peak memory, building included", _peak(), unit="MB")


def _published(home: Home) -> Generation:
    published = Generations(home.index).current()
    assert published is not None
    return published


def _change(store: Store, maker: Maker) -> None:
    """As a live session does: another one of fifty exchanges with what was learned from them."""
    with store.transaction():
        maker.session(store, store.sessions.count())


def asked(home: Home, store: Store, embedder: Embedder, questions: Sequence[Asked]) -> Iterator[Row]:
    """Ask a published archive, as a whole and part by part."""
    queries = {
        "no filter": [Query((one.words,)) for one in questions],
        "half the dates": [
            Query((one.words,), filters=Filters(after=one.filters.after, before=one.filters.before))
            for one in questions
        ],
        "all filters": [Query((one.words,), filters=one.filters) for one in questions],
    }

    def search() -> Callable[[Query], Results]:
        # Another engine for every row: it remembers the vectors of what it was asked.
        return partial(Hits(store, Engine(store, Generations(home.index), embedder)).search, snippets=False)

    for name, wanted in queries.items():
        yield _row(f"hybrid search, {name}", _each(search(), wanted))
    yield _row("the same filters again and again", _each(search(), _alike(queries["all filters"])))
    for name in ("no filter", "all filters"):
        for phase, seconds in phases(store, home, embedder, queries[name]).items():
            yield _row(f"  {phase}, {name}", seconds)
    view = Snapshot(store, Generations(home.index), embedder)
    yield from _recall(home, view, embedder, questions[:_COMPARED])


def _recall(home: Home, view: Snapshot, embedder: Embedder, questions: Sequence[Asked]) -> Iterator[Row]:
    """What share of the nearest of an exact scan is found, under filters that keep less and less."""
    published = _published(home)
    text, every = TextIndex.open(published.text), VectorIndex.open(published.vectors).contents()
    vectors = embedder.embed([one.words for one in questions])
    for name, days in (("everything", 0), ("half", DAYS // 2), ("10 %", DAYS // 10), ("1 %", DAYS // 100)):
        shares: list[float] = []
        for one, vector in zip(questions, vectors, strict=True):
            after = one.filters.after or 0
            filters = Filters(after=after, before=after + days * DAY) if days else _NONE
            keys = text.keys(filters)
            flags = np.zeros(1 + keys.max(initial=0), dtype=bool)
            flags[keys] = True
            found, exact = view.nearest(vector, filters, DEPTH), every.nearest(vector, DEPTH, flags)
            shares.append(float(np.isin(exact.item, found.item).mean()) if len(exact) else 1.0)
        yield Row(f"  recall@{DEPTH} of vectors, filter that keeps {name}", sum(shares) / len(shares), unit="")


def _alike(queries: Sequence[Query]) -> list[Query]:
    return [replace(query, filters=queries[0].filters) for query in queries]


def _each(ask: Callable[[_T], object], questions: Sequence[_T]) -> list[float]:
    """Seconds for each question but the last few, which warm up."""
    for question in questions[-_WARM_UP:]:
        ask(question)
    return [_seconds(partial(ask, question)) for question in questions[:-_WARM_UP]]


def _row(name: str, seconds: Sequence[float]) -> Row:
    return Row(name, median(seconds) * 1e3, quantiles(seconds, n=100)[-1] * 1e3)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
