"""Three baseline engines that share no ranking code with Palaver."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import tantivy

from palaver.search.model.embedding import Embedder

from .corpus import Corpus, Passage, Ranked, Searcher
from .vectors import embedded

_RRF_K = 60


def best_per_item(passages: Iterable[tuple[str, float]], limit: int) -> list[Ranked]:
    """Return the first `limit` distinct items of (item, score) pairs, which must be sorted by descending score."""
    best: dict[str, float] = {}
    for item, score in passages:
        best.setdefault(item, score)
        if len(best) == limit:
            break
    return [Ranked(item, score) for item, score in best.items()]


class BM25:
    """Tantivy's BM25 over the passages with the default tokenizer. A passage matches if it contains any query word."""

    def __init__(self, corpus: Corpus) -> None:
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("text")
        schema.add_text_field("project", tokenizer_name="raw")
        schema.add_unsigned_field("number", stored=True)
        self._schema = schema.build()
        self._index = tantivy.Index(self._schema)
        # Use Tantivy's default tokenizer, so that queries are tokenized like the passages, but never parsed.
        simple = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        self._analyzer = simple.filter(tantivy.Filter.remove_long(40)).filter(tantivy.Filter.lowercase()).build()
        self._items = [passage.item for passage in corpus.passages]
        self._fill(corpus.passages)

    def _fill(self, passages: Sequence[Passage]) -> None:
        # With one thread, equal scores have the same order in each run.
        with self._index.writer(num_threads=1) as writer:
            for number, passage in enumerate(passages):
                writer.add_document(tantivy.Document(text=passage.text, project=passage.project, number=number))
            writer.commit()
            writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, query: str, limit: int, project: str | None) -> Sequence[Ranked]:
        words = [tantivy.Query.term_query(self._schema, "text", word) for word in self._analyzer.analyze(query)]
        wanted = tantivy.Query.boolean_query([(tantivy.Occur.Should, word) for word in words])
        if project is not None:
            inside = tantivy.Query.const_score_query(tantivy.Query.term_query(self._schema, "project", project), 0.0)
            wanted = tantivy.Query.boolean_query([(tantivy.Occur.Must, wanted), (tantivy.Occur.Must, inside)])
        found = self._searcher.search(wanted, limit=len(self._items), count=False).hits
        return best_per_item(((self._item(address), score) for score, address in found), limit)

    def _item(self, address: tantivy.DocAddress) -> str:
        number: int = self._searcher.doc(address)["number"][0]
        return self._items[number]


class VectorSearch:
    """Exact vector search over the passages with the packaged model."""

    def __init__(self, corpus: Corpus, embedder: Embedder) -> None:
        self._embedder = embedder
        self._vectors = embedded(embedder, [passage.text for passage in corpus.passages])
        self._items = [passage.item for passage in corpus.passages]
        self._projects = [passage.project for passage in corpus.passages]

    def search(self, query: str, limit: int, project: str | None) -> Sequence[Ranked]:
        similarities = self._vectors @ self._embedder.embed([query])[0]
        order: list[int] = np.argsort(-similarities, kind="stable").tolist()
        allowed = (place for place in order if project in {None, self._projects[place]})
        return best_per_item(((self._items[place], float(similarities[place])) for place in allowed), limit)


class RankFusion:
    """Reciprocal rank fusion of other engines' rankings."""

    def __init__(self, engines: Sequence[Searcher]) -> None:
        self._engines = engines

    def search(self, query: str, limit: int, project: str | None) -> Sequence[Ranked]:
        scores: defaultdict[str, float] = defaultdict(float)
        for engine in self._engines:
            for rank, found in enumerate(engine.search(query, limit, project), 1):
                scores[found.item] += 1 / (_RRF_K + rank)
        return [Ranked(*pair) for pair in sorted(scores.items(), key=lambda pair: -pair[1])[:limit]]
