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
from palaver.core.disclosure import Filters, Query
from palaver.core.home import Home
from palaver.search.embedder import Embedder, load
from palaver.search.engine import Engine
from palaver.search.findings import Matches, Nears
from palaver.search.fusion import gather
from palaver.search.generation import Generations
from palaver.search.hits import Hits
from palaver.search.indexer import Indexer
from palaver.search.snapshot import Snapshot
from palaver.templates.render import Renderer

from .archive import Asked, Maker

_WARM_UP = 5
_DEPTH = 400
"""As many as the engine takes of both engines."""
_NONE = Filters()
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Row:
    """One measure: a median and a 99th percentile, or one value alone. `unit` is ms, s or MB."""

    name: str
    value: float
    p99: float | None = None
    unit: str = "ms"


def measures(folder: Path, items: int, questions: int, progress: Callable[[int], None]) -> Iterator[Row]:
    """Build an archive of so many items in an empty folder, then ask it so many questions, at least ten."""
    home, embedder = Home(folder), load()
    home.make()
    maker = Maker(embedder)
    with Store.create(home.database) as store:
        maker.fill(store, items, progress)
        indexer = Indexer(store, Generations(home.index), embedder)
        yield Row("build the index", _seconds(indexer.publish), unit="s")
        _change(store, maker)
        yield Row("publish 100 changed items", _seconds(indexer.publish), unit="s")
        yield Row("index on disk", sum(path.stat().st_size for path in _newest(home).rglob("*")) / 1e6, unit="MB")
        yield Row("store on disk", home.database.stat().st_size / 1e6, unit="MB")
        yield from _asked(home, store, embedder, list(maker.questions(questions)))
    yield Row("peak memory, building included", _peak(), unit="MB")


def _newest(home: Home) -> Path:
    published = Generations(home.index).current()
    assert published is not None
    return published.folder


def _change(store: Store, maker: Maker) -> None:
    """As a live session does: another one of fifty exchanges with what was learned from them."""
    with store.transaction():
        maker.session(store, store.sessions.count())


def _asked(home: Home, store: Store, embedder: Embedder, questions: Sequence[Asked]) -> Iterator[Row]:
    engine = Engine(store, Generations(home.index), embedder)
    hits = Hits(store, engine)
    queries = {
        "no filter": [Query((one.words,)) for one in questions],
        "half the dates": [
            Query((one.words,), filters=Filters(after=one.filters.after, before=one.filters.before))
            for one in questions
        ],
        "all filters": [Query((one.words,), filters=one.filters) for one in questions],
    }
    for name, asked in queries.items():
        yield _row(f"hybrid search, {name}", _each(hits.search, asked))
    yield _row("the same filters again and again", _each(hits.search, _alike(queries["all filters"])))
    yield from _parts(Snapshot(store, Generations(home.index), embedder), embedder, questions)
    results = [hits.search(query) for query in queries["no filter"]]
    renderer = Renderer()
    yield _row("  rendering", _each(renderer.search, results))


def _alike(queries: Sequence[Query]) -> list[Query]:
    return [replace(query, filters=queries[0].filters) for query in queries]


def _parts(view: Snapshot, embedder: Embedder, questions: Sequence[Asked]) -> Iterator[Row]:
    """The parts of a hybrid search. What choosing and loading hits takes is the whole without them."""
    yield _row("  query embedding", _each(lambda one: embedder.embed([one.words]), questions))
    vectors = [embedder.embed([one.words])[0, :] for one in questions]
    for name, filtered in (("", False), (", all filters", True)):
        asked = [(one.words, one.filters if filtered else _NONE) for one in questions]
        meant = [(vector, filters) for vector, (_, filters) in zip(vectors, asked, strict=True)]
        yield _row(f"  text engine{name}", _each(lambda one: view.text(*one, _DEPTH), asked))
        yield _row(f"  vector engine{name}", _each(lambda one: view.nearest(*one, _DEPTH), meant))
    found: list[tuple[Matches, Nears]] = []
    compared: list[float] = []
    for one, vector in zip(questions, vectors, strict=True):
        matches, nears = view.text(one.words, _NONE, _DEPTH), view.nearest(vector, _NONE, _DEPTH)
        started = time.perf_counter()
        all_of = view.of_events(vector, np.unique(np.concatenate([matches.event, nears.event])))
        compared.append(time.perf_counter() - started)
        found.append((matches, all_of))
    yield _row("  comparing events", compared)
    yield _row("  fusion", _each(lambda pair: gather(*pair), found))


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
