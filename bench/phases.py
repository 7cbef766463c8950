"""Time each phase of a search separately.

A real search is faster, because it embeds the query during the text search.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.query import Mode, Query
from palaver.search.index.generation import Generations
from palaver.search.index.matches import VectorMatches, distinct
from palaver.search.model.embedding import Embedder
from palaver.search.present.hits import Hits, Representatives
from palaver.search.query.query_analysis import AnalyzedQuery
from palaver.search.rank.engine import DEPTH, Engine, completed
from palaver.search.rank.fusion import Wording
from palaver.templates.render import Renderer

from .stopwatch import Took, stopwatch

_WARM_UP = 5


def phases(store: Store, home: Home, embedder: Embedder, queries: Sequence[Query]) -> Mapping[str, list[Took]]:
    """Return the times of each phase, one per query. Each query has one concept.

    The time of a filter is part of the phase that applies it. As a warm-up, the last queries also run once before the
    measurement.
    """
    engine = Engine.of(store, Generations(home.index), embedder)
    hits, choices, renderer = Hits(store, engine), Representatives(store, engine), Renderer()
    taken: defaultdict[str, list[Took]] = defaultdict(list)
    for number, query in enumerate([*queries[-_WARM_UP:], *queries]):
        if number == _WARM_UP:
            taken.clear()
        view, filters = engine.snapshot, query.filters
        view.refresh()
        analyzed = view.resolve(AnalyzedQuery.of(query.concepts[0]))
        with stopwatch(taken, "query embedding"):
            vector = embedder.read([analyzed.text]).vectors[0, :]
        # The engine caches the embedding, so the time of embedding is not part of another phase.
        engine.embeddings.of(analyzed.text)
        with stopwatch(taken, "text search"):
            every = engine.entries(analyzed, Mode.BOTH, filters, DEPTH)
            matches = every.first(DEPTH)
        with stopwatch(taken, "vector search"):
            nears = VectorMatches.none() if analyzed.phrases else view.nearest(vector, filters, DEPTH)
        with stopwatch(taken, "exact cosines of candidates"):
            compared = view.of_events(vector, distinct(np.concatenate([matches.event, nears.event]))[0])
        with stopwatch(taken, "text scores of vector-only candidates"):
            if len(matches) == DEPTH and not analyzed.phrases:
                matches = completed(matches, compared, engine.words_of(analyzed, filters, every, DEPTH))
        with stopwatch(taken, "fusion and re-ranking"):
            fused = engine.ranked([analyzed], Mode.BOTH, [Wording(matches, compared)])
        with stopwatch(taken, "selection of representatives"):
            chosen = [
                each
                for each, _ in zip(choices.of(fused.events, filters, query.limit), range(query.limit), strict=False)
            ]
        with stopwatch(taken, "loading of hits"):
            hits._load_hits(chosen, analyzed, query, snippets=False)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]
        results = hits.search(query, snippets=False)
        with stopwatch(taken, "rendering"):
            renderer.search(results)
    return taken
