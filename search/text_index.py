"""The text index: Tantivy, kept behind one class. Queries are built as objects, never parsed."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import tantivy

from ..core.disclosure import Filters
from .analysis import PROSE, analyzer, expand

_HEAP = 32_000_000
_NUMBERS = ("key", "event", "source", "ordinal", "start_line", "end_line")
_BODY = "body"
_K1 = 1.2
"""Tantivy's BM25 parameter: a term weighs at most its inverse document frequency times 1 + k1."""


@dataclass(frozen=True, slots=True)
class TextEntry:
    """One findable stretch of an item: what it says, where it stands, and all it can be filtered by.

    `event` is the key of the exchange the item belongs to, `ordinal` its place in its source. The filter values are
    lower-case.
    """

    key: int
    event: int
    source: int
    ordinal: int
    kind: str
    at: int
    start_line: int
    end_line: int
    body: str
    types: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A matching entry. `fraction`, 0 to 1, is its BM25 score as a share of what the query could score at most.

    Unlike the score it can be compared across queries and indexes: a rare word found counts for much, a query whose
    rare words are nowhere stays low, and so leaves the decision to the vectors.
    """

    key: int
    event: int
    source: int
    ordinal: int
    start_line: int
    end_line: int
    fraction: float


class TextIndex:
    """Entries that can be found by words. On disk when given a folder, else in memory."""

    def __init__(self, folder: Path | None = None) -> None:
        """Open or make an index; raises ValueError when the folder holds something else."""
        self._schema = _schema()
        self._index = tantivy.Index(self._schema, path=str(folder) if folder else None, reuse=folder is not None)
        self._index.register_tokenizer(PROSE, analyzer())
        self._analyzer = analyzer()
        self._searcher = self._index.searcher()

    def apply(self, gone: Iterable[int], entries: Iterable[TextEntry]) -> None:
        """Remove all entries of the items `gone`, add these, and make the result visible."""
        writer = self._index.writer(_HEAP, num_threads=1)
        # By query, not by term: tantivy 0.27 makes a signed term of a Python int, which matches no unsigned field.
        writer.delete_documents_by_query(tantivy.Query.term_set_query(self._schema, "key", list(gone)))
        for entry in entries:
            writer.add_document(_document(entry))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def __len__(self) -> int:
        return self._searcher.num_docs

    def search(self, text: str, filters: Filters, limit: int, hidden: Sequence[int] = ()) -> list[TextMatch]:
        """The best entries with any of the words, that satisfy the filters and belong to no hidden item."""
        terms = list(dict.fromkeys(self._analyzer.analyze(expand(text))))
        if not terms or not len(self):
            return []
        wanted = [(tantivy.Occur.Should, tantivy.Query.term_query(self._schema, _BODY, term, "freq")) for term in terms]
        query = self._restricted(tantivy.Query.boolean_query(wanted), filters, hidden)
        return self._matches(query, limit, sum(map(self._most, terms)))

    def _most(self, term: str) -> float:
        """The most a term can add to a BM25 score (Robertson and Zaragoza 2009, as Lucene and Tantivy have it)."""
        entries, having = len(self), self._searcher.doc_freq(_BODY, term)
        return math.log(1 + (entries - having + 0.5) / (having + 0.5)) * (1 + _K1)

    def _restricted(self, query: tantivy.Query, filters: Filters, hidden: Sequence[int]) -> tantivy.Query:
        clauses = [(tantivy.Occur.Must, query)]
        for clause in self._clauses(filters):
            clauses.append((tantivy.Occur.Must, tantivy.Query.const_score_query(clause, 0.0)))
        if hidden:
            clauses.append((tantivy.Occur.MustNot, tantivy.Query.term_set_query(self._schema, "key", list(hidden))))
        return tantivy.Query.boolean_query(clauses) if len(clauses) > 1 else query

    def _clauses(self, filters: Filters) -> list[tantivy.Query]:
        named = {
            "type": filters.types,
            "concept": filters.concepts,
            "file": filters.files,
            "project": filters.projects,
        }
        clauses = [
            tantivy.Query.term_set_query(self._schema, name, [value.lower() for value in values])
            for name, values in named.items()
            if values
        ]
        if filters.after is not None or filters.before is not None:
            clauses.append(self._dates(filters.after, filters.before))
        return clauses

    def _dates(self, after: int | None, before: int | None) -> tantivy.Query:
        return tantivy.Query.range_query(
            self._schema,
            "at",
            tantivy.FieldType.Integer,
            lower_bound=after if after is not None else 1,
            upper_bound=before,
            include_upper=False,
        )

    def allowed(self, filters: Filters, among: Sequence[int]) -> set[int]:
        """Those of these items that satisfy the filters."""
        if not among or not len(self):
            return set()
        query = tantivy.Query.term_set_query(self._schema, "key", list(among))
        return {match.key for match in self._matches(self._restricted(query, filters, ()), len(self), 1.0)}

    def keys(self, filters: Filters) -> set[int]:
        """All items that satisfy the filters."""
        query = self._restricted(tantivy.Query.all_query(), filters, ())
        return {match.key for match in self._matches(query, max(1, len(self)), 1.0)}

    def _matches(self, query: tantivy.Query, limit: int, most: float) -> list[TextMatch]:
        hits = self._searcher.search(query, limit, count=False).hits
        places = [place for _, place in hits]
        columns = [self._searcher.fast_field_values(name, places) for name in _NUMBERS]
        numbers = zip(*columns, strict=True)
        return [_match(row, score / most) for (score, _), row in zip(hits, numbers, strict=True)]


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("key", indexed=True, fast=True)
    for name in _NUMBERS[1:]:
        builder.add_unsigned_field(name, fast=True)
    builder.add_integer_field("at", indexed=True, fast=True)
    for name in ("kind", "type", "concept", "file", "project"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    builder.add_text_field(_BODY, tokenizer_name=PROSE, index_option="freq")
    return builder.build()


def _document(entry: TextEntry) -> tantivy.Document:
    document = tantivy.Document()
    for name in _NUMBERS:
        document.add_unsigned(name, getattr(entry, name))
    document.add_integer("at", entry.at)
    document.add_text("kind", entry.kind)
    document.add_text(_BODY, expand(entry.body))
    repeated = {"type": entry.types, "concept": entry.concepts, "file": entry.files, "project": entry.projects}
    for name, values in repeated.items():
        for value in values:
            document.add_text(name, value)
    return document


def _match(row: tuple[float | None, ...], fraction: float) -> TextMatch:
    key, event, source, ordinal, start, end = (int(number or 0) for number in row)
    return TextMatch(key, event, source, ordinal, start, end, fraction)
