"""Text index based on Tantivy, its writer, and its entries, which are the searchable pieces of items.

Queries are built from objects and never parsed from text.
"""

import math
import os
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeAlias, cast

import tantivy
from msgspec import Struct

from ...archiver.lines import line
from ...core.errors import IndexUnwritable
from ...core.query import FIELDS, Comparison, FilterField, Filters, Role
from ...core.text import is_path_pattern, path_fits
from ...core.tokens import Memo
from ..query.query_analysis import AnalyzedQuery
from ..query.tokenizer import PROSE, analyzer, expand, label, path_label, project_labels, spaced, stems, terms

if TYPE_CHECKING:
    from .matches import Integers, TextMatches

_OUTSIDE = {Comparison.DATE, Comparison.LABEL}
VALUE_FIELDS = tuple(field.name for field in FIELDS.values() if field.comparison not in _OUTSIDE)
"""Fields with the values of filters."""
ROLE = FIELDS["roles"].name
NUMBERS = ("key", "event", "source", "ordinal", "start_line", "end_line", "in_code")
BODY = "body"
DIGEST = "digest"
EVERY = "every"
"""Field that contains the same term in every entry. The document frequency of this term is the number of entries."""
ROLE_TEXT, SOLE_ROLE = "said by ", "wholly by"
"""Prefix of the fields that contain the text of one role, and field for entries that one role wrote alone.

The role filter uses these fields. If several roles wrote an entry, the text of each role has its own field, without
term frequencies. If one role wrote the whole entry, `SOLE_ROLE` contains this role, and the filter searches the field
`body`. Ranking always uses `body`.
"""
_HEAP = 32_000_000
"""Memory for the index writer in bytes."""
_NUMBERS = attrgetter(*NUMBERS)


class TextEntry(Struct, frozen=True):
    """Searchable piece of an item: its text, its location, and its filter values.

    Attributes:
        event: Key of the exchange that the item belongs to. For a memory or document chunk, its own key.
        ordinal: Position of the exchange in its source file.
        at: Time of the item in milliseconds since 1970, or 0 if unknown.
        values: Values of each filter as `indexed_value` returns them, by the name of the field.
        said: (role, text) pairs for the role filter.
        in_code: 1 for a chunk of code, otherwise 0.
    """

    key: int
    event: int
    source: int
    ordinal: int
    at: int
    start_line: int
    end_line: int
    body: str
    values: Mapping[str, Sequence[str]] = {}
    said: tuple[tuple[str, str], ...] = ()
    in_code: int = 0

    @property
    def digest(self) -> int:
        """64-bit digest of the content, used to compare the index with the store."""
        content = (_NUMBERS(self), self.at, self.body, sorted(self.values.items()), self.said)
        return int.from_bytes(blake2b(line(content), digest_size=8).digest())


def indexed_value(field: FilterField, value: str, folder: str = "") -> str:
    """Return a value of a filter as the index stores it. A relative path is resolved against `folder`."""
    return path_label(value, folder) if field.comparison is Comparison.PATH else label(value)


def schema() -> tantivy.Schema:
    """Return the schema of a text index."""
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("key", indexed=True, fast=True)
    for name in NUMBERS[1:]:
        builder.add_unsigned_field(name, fast=True)
    builder.add_unsigned_field(DIGEST, fast=True)
    builder.add_integer_field("at", indexed=True, fast=True)
    # Filters compare whole values, so their values are not tokenized.
    for name in (EVERY, SOLE_ROLE, *VALUE_FIELDS):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    for role in Role:
        builder.add_text_field(ROLE_TEXT + role, tokenizer_name=PROSE, index_option="basic")
    builder.add_text_field(BODY, tokenizer_name=PROSE, index_option="position")
    return builder.build()


def document(entry: TextEntry) -> tantivy.Document:
    """Return the Tantivy document of an entry."""
    written = tantivy.Document()
    for name in NUMBERS:
        written.add_unsigned(name, getattr(entry, name))
    written.add_unsigned(DIGEST, entry.digest)
    written.add_integer("at", entry.at)
    written.add_text(EVERY, EVERY)
    written.add_text(BODY, expand(entry.body))
    for role, text in entry.said:
        written.add_text(ROLE, role)
        if text == entry.body:
            written.add_text(SOLE_ROLE, role)
        else:
            written.add_text(ROLE_TEXT + role, expand(text))
    for name, values in entry.values.items():
        for value in values:
            written.add_text(name, value)
    return written


class TextWriter:
    """Writer of changes to an index. `finish` makes all changes visible at once. Without it, they are discarded."""

    def __init__(self, index: tantivy.Index) -> None:
        self._schema = index.schema
        with writing():
            self._writer = index.writer(_HEAP, num_threads=1)

    def replace(self, gone: Iterable[int], entries: Iterable[TextEntry]) -> Self:
        """Remove all entries of the items `gone`, then add `entries`. Raises `IndexUnwritable`."""
        # Delete by query: tantivy 0.27 converts a Python int to a signed term, which never matches unsigned fields.
        query = tantivy.Query.term_set_query(self._schema, "key", list(gone))
        with writing():
            self._writer.delete_documents_by_query(query)
        for entry in entries:
            with writing():
                self._writer.add_document(document(entry))
        return self

    def finish(self) -> None:
        """Commit all changes. Raises `IndexUnwritable`."""
        with writing():
            self._writer.commit()
            self._writer.wait_merging_threads()


@contextmanager
def writing() -> Generator[None]:
    """Convert a `ValueError` of Tantivy to `IndexUnwritable`. During a write, only disk errors cause `ValueError`."""
    try:
        yield
    except ValueError as error:
        raise IndexUnwritable(str(error)) from error


_EXPANSIONS = 100
"""Maximum number of indexed terms that a prefix such as `instal*` matches. The most frequent terms are used."""
_SINGLY = 2_000
"""Maximum number of filter values to search with one query each. For more values, a single query is faster."""
_ENTRIES = 50
"""Number of entries to read per item in order to find the best entry of each item."""
_RARE = 300
"""Maximum number of entries with a word for which all these entries are read, instead of those of some items."""
_SPARSE, _CHAINED = 300, 64
"""Limits for reading the entries that satisfy the filters, instead of the entries that contain a query term.

This is faster if at most one of `_SPARSE` entries satisfies the filters and the query has at most `_CHAINED` terms.
"""
_COUNTED = 4_096
"""Maximum number of terms whose entry counts are cached."""
_K1 = 1.2
"""Tantivy's BM25 parameter k1. The maximum score of a term is its inverse document frequency times 1 + k1."""
_LOCK = ".tantivy-meta.lock"
"""File that Tantivy locks while it opens an index."""

Pairs: TypeAlias = Mapping[tuple[str, str], float]
"""Pairs of adjacent terms, each with its share of the total weight."""


class TextIndex:
    """Index of text entries for search by words."""

    def __init__(self, index: tantivy.Index) -> None:
        # The default policy watches the folder from a thread, which may create a lock file while the folder is removed.
        index.config_reader("manual")
        self._index, self._schema = index, index.schema
        index.register_tokenizer(PROSE, analyzer())
        self._reload()

    @classmethod
    def make(cls, folder: Path | None = None) -> Self:
        """Create an index in an empty folder or in memory. Raises `IndexUnwritable`."""
        with writing():
            return cls(tantivy.Index(schema(), path=str(folder) if folder else None, reuse=False))

    @classmethod
    def open(cls, folder: Path, *, read_only: bool = False) -> Self:
        """Open the index in a folder. Raises `ValueError` if the folder does not contain an index."""
        with _lockable(folder, read_only=read_only) as readable:
            return cls(tantivy.Index.open(str(readable)))

    def apply(self, gone: Iterable[int], entries: Iterable[TextEntry]) -> None:
        """Remove all entries of the items `gone`, add `entries` and make the changes visible.

        Raises:
            IndexUnwritable: A write failed.
        """
        self.begin().replace(gone, entries).finish()
        self._reload()

    def begin(self) -> TextWriter:
        """Return a writer. Its changes are visible in indexes that are opened after `TextWriter.finish`."""
        return TextWriter(self._index)

    def _reload(self) -> None:
        """Make the last commit visible to searches."""
        self._index.reload()
        self._searcher = self._index.searcher()
        self._entries = self._searcher.doc_freq(EVERY, EVERY)
        self._matching_files: dict[str, list[str]] = {}
        """Cache of the indexed files that match a path pattern, by pattern."""
        self._entry_counts = Memo[str, int](_COUNTED)

    def __len__(self) -> int:
        return self._searcher.num_docs

    @property
    def entries(self) -> int:
        """Number of entries as BM25 counts them, including deleted entries that Tantivy has not removed yet."""
        return self._entries

    @property
    def stale(self) -> float:
        """Share of deleted entries that Tantivy has not removed yet, 0 to 1."""
        return 1 - len(self) / self._entries if self._entries else 0.0

    def contents(self) -> Counter[tuple[int, int]]:
        """Return (item, digest) pairs of all entries."""
        if not len(self):
            return Counter()
        keys, digests = self._columns(("key", DIGEST), self._hits(tantivy.Query.all_query(), len(self)))
        return Counter(zip(keys, digests, strict=True))

    def search(
        self,
        text: str | AnalyzedQuery,
        filters: Filters,
        limit: int,
        hidden: Sequence[int] = (),
        among: Sequence[int] | None = None,
        share: float = 1.0,
        larger: "TextIndex | None" = None,
    ) -> "TextMatches":
        """Return the best entries that contain any word and all quoted phrases of the query.

        Args:
            text: The query.
            filters: Filters that entries must satisfy.
            limit: Maximum number of entries to return.
            hidden: Items to leave out.
            among: Items to search, by default all.
            share: Approximate share of entries that satisfy the filters, 0 to 1.
            larger: Index whose entries also count in the IDF of terms, for a search in the small index of unpublished
                changes.
        """
        query_ = AnalyzedQuery(text) if isinstance(text, str) else text
        scored = self._term_queries(query_, larger) if len(self) else []
        if not scored:
            from .matches import TextMatches

            return TextMatches.none()
        queries, best = [query for query, _ in scored], sum(score for _, score in scored)
        needed = [*map(self._phrase, query_.phrases), *self._role_queries(query_.text, filters)]
        if among is not None:
            needed.append(self._any_of("key", among))
        passing = share * len(self) if among is None else len(among)
        if passing * _SPARSE <= len(self) and len(queries) <= _CHAINED and not query_.phrases:
            hits = self._hits(_summing(queries, self._restricted(needed, filters, hidden)), limit)
            return self._matches([hit for hit in hits if hit[0] > 0], best)
        return self._matches(self._hits(self._restricted([_any(queries), *needed], filters, hidden), limit), best)

    def newest(self, filters: Filters, limit: int, hidden: Sequence[int] = ()) -> list[tuple[int, int]]:
        """Return (instant, event key) of up to `limit` entries that satisfy the filters, newest first, undated last."""
        query = self._restricted([], filters, hidden)
        hits = self._searcher.search(query, limit, count=False, order_by_field="at").hits if len(self) else []
        ats, events = self._columns(("at", "event"), cast("list[tuple[float, tantivy.DocAddress]]", hits))
        return list(zip(ats, events, strict=True))

    def entries_with(self, term: str) -> int:
        """Return the number of entries with a term, including deleted entries that Tantivy has not removed yet."""
        return self._entry_counts.get_or_make(term, partial(self._searcher.doc_freq, BODY))

    def contains_phrase(self, phrase: str) -> bool:
        """Return whether any entry contains this phrase."""
        return bool(len(self) and self._hits(self._phrase(phrase), 1))

    def adjacent_terms(self, pairs: Pairs, items: Sequence[int]) -> dict[int, float]:
        """Return, for each item with adjacent pairs, the summed weight of the pairs in its best entry, 0 to 1."""
        indexed_pairs = {pair: share for pair, share in pairs.items() if all(map(self.entries_with, pair))}
        if not indexed_pairs or not items:
            return {}
        of_items, among = self._any_of("key", items), set(items)
        queries: list[tantivy.Query] = []
        limit = _ENTRIES * len(items)
        for pair, share in indexed_pairs.items():
            query = tantivy.Query.const_score_query(self._phrase_query(pair), share)
            entries = min(map(self.entries_with, pair))
            if entries > _RARE:
                # Only entries of these items are read. For a rare word, this filter would take longer than the search.
                query = tantivy.Query.boolean_query([(tantivy.Occur.Must, of_items), (tantivy.Occur.Must, query)])
            else:
                limit += entries
            queries.append(query)
        best: dict[int, float] = {}
        hits = self._hits(_any(queries), limit)
        for key, (score, _) in zip(self._keys(hits), hits, strict=True):
            if key in among:
                best.setdefault(key, min(score, 1.0))
        return best

    def spelled_like(self, term: str, limit: int) -> list[int]:
        """Return items that contain words spelled like a term, up to `limit` items per word."""
        if not len(self):
            return []
        from ..query import spelling  # loads rapidfuzz, which few queries need

        alike = spelling.similar_stems(term, dict(self._terms_from(BODY, term[:1])))
        fuzzy = tantivy.Query.fuzzy_term_query(self._schema, BODY, term, spelling.max_edits(term))
        queries = [fuzzy, *(self._term(BODY, stem) for stem in alike)]
        return [key for query in queries for key in self._keys(self._hits(query, limit))]

    def names(self, field: str) -> list[str]:
        """Return all values of a filter field such as `project`. Some values may belong only to deleted entries."""
        return [term for term, _ in self._searcher.terms_with_prefix(field, "")]

    def _term_queries(self, query_: AnalyzedQuery, larger: "TextIndex | None") -> list[tuple[tantivy.Query, float]]:
        """Return a Tantivy query and its maximum score, for each term and prefix of the user's query."""
        scored = [(self._scaled(term, larger), self._max_score(term, larger)) for term in terms(query_.text)]
        for prefix in query_.prefixes:
            words = [self._term(BODY, term) for term, _ in self._terms_from(BODY, prefix.lower(), _EXPANSIONS)]
            scored.append((tantivy.Query.disjunction_max_query(words), 0.0))
        return scored

    def _term(self, field: str, term: str) -> tantivy.Query:
        return tantivy.Query.term_query(self._schema, field, term, "freq")

    def _phrase(self, phrase: str) -> tantivy.Query:
        """Return a query for a phrase. Compound names stay whole, because entries have their parts only at the end."""
        words = stems(spaced(phrase))
        if not words:
            return tantivy.Query.all_query()
        if len(words) == 1:
            return tantivy.Query.const_score_query(self._term(BODY, words[0]), 0.0)
        return tantivy.Query.const_score_query(self._phrase_query(words), 0.0)

    def _phrase_query(self, words: Sequence[str]) -> tantivy.Query:
        return tantivy.Query.phrase_query(self._schema, BODY, [*words])

    def _role_queries(self, text: str, filters: Filters) -> list[tantivy.Query]:
        """Return queries for entries in which one of the selected roles wrote one of the words."""
        if not filters.roles:
            return []
        said = terms(text)
        single = [self._any_of(SOLE_ROLE, filters.roles), _any([self._term(BODY, term) for term in said])]
        several = [self._term(ROLE_TEXT + role, term) for role in filters.roles for term in said]
        matching = _any([tantivy.Query.boolean_query([(tantivy.Occur.Must, query) for query in single]), *several])
        return [tantivy.Query.const_score_query(matching, 0.0)]

    def _scaled(self, term: str, larger: "TextIndex | None") -> tantivy.Query:
        query = self._term(BODY, term)
        return (
            query
            if larger is None
            else tantivy.Query.boost_query(query, self._max_score(term, larger) / self._max_score(term))
        )

    def _max_score(self, term: str, larger: "TextIndex | None" = None) -> float:
        """Return the maximum BM25 score of a term (Robertson and Zaragoza 2009, as in Lucene and Tantivy)."""
        indexes = [self] if larger is None else [self, larger]
        entries, having = sum(index.entries for index in indexes), sum(index.entries_with(term) for index in indexes)
        return math.log(1 + (entries - having + 0.5) / (having + 0.5)) * (1 + _K1)

    def _restricted(self, needed: Sequence[tantivy.Query], filters: Filters, hidden: Sequence[int]) -> tantivy.Query:
        required = [*needed, *self._clauses(filters)] or [tantivy.Query.all_query()]
        clauses = [(tantivy.Occur.Must, clause) for clause in required]
        if hidden:
            clauses.append((tantivy.Occur.MustNot, self._any_of("key", hidden)))
        # A single clause is not wrapped, so that Tantivy can skip entries that cannot be among the best.
        return tantivy.Query.boolean_query(clauses) if len(clauses) > 1 else clauses[0][1]

    def _clauses(self, filters: Filters) -> list[tantivy.Query]:
        clauses = [
            self._any_of(field.name, self._indexed_values(field, values))
            for attribute, field in FIELDS.items()
            if field.name in VALUE_FIELDS and (values := getattr(filters, attribute))
        ]
        if filters.after is not None or filters.before is not None:
            clauses.append(self._dates(filters.after, filters.before))
        return clauses

    def _indexed_values(self, field: FilterField, values: Sequence[str]) -> Iterable[str]:
        """Return the indexed values that match any of the values of a filter."""
        match field.comparison:
            case Comparison.PROJECT:
                return project_labels(values)
            case Comparison.PATH:
                return (term for path in values for term in self._files(path))
            case Comparison.BEGINNING:
                return (term for value in values for term, _ in self._terms_from(field.name, label(value)))
            case _:
                return map(label, values)

    def _any_of(self, name: str, values: Iterable[str | int]) -> tantivy.Query:
        """Return a query for entries that have any of these values in the field `name`.

        The query does not affect the score.
        """
        listed = list(values)
        if len(listed) > _SINGLY:
            matching = tantivy.Query.term_set_query(self._schema, name, listed)
        else:
            matching = _any([tantivy.Query.term_query(self._schema, name, value, "basic") for value in listed])
        return tantivy.Query.const_score_query(matching, 0.0)

    def _terms_from(self, field: str, beginning: str, limit: int | None = None) -> list[tuple[str, int]]:
        return self._searcher.terms_with_prefix(field, beginning, limit=limit)

    def _files(self, path: str) -> list[str]:
        """Return the indexed files that match a path.

        `path` is a full path, the end of a path, a folder with a final slash, or a pattern.
        """
        reversed_path = path_label(path)
        if not is_path_pattern(path):
            return [reversed_path, *(term for term, _ in self._terms_from("file", f"{reversed_path}/"))]
        pattern = "/".join(reversed(reversed_path.split("/"))) + "/" * path.endswith("/")
        if path not in self._matching_files:
            every = self.names("file")
            self._matching_files[path] = [
                term for term in every if path_fits(pattern, "/".join(reversed(term.split("/"))))
            ]
        return self._matching_files[path]

    def _dates(self, after: int | None, before: int | None) -> tantivy.Query:
        """Return a query for a date range. Undated entries do not match."""
        dated = tantivy.Query.range_query(
            self._schema,
            "at",
            tantivy.FieldType.Integer,
            lower_bound=max(1, after or 1),
            upper_bound=None if before is None else before - 1,
        )
        return tantivy.Query.const_score_query(dated, 0.0)

    def allowed(self, filters: Filters, among: Sequence[int]) -> set[int]:
        """Return the items in `among` that satisfy the filters."""
        if not among or not len(self):
            return set()
        query = self._restricted([self._any_of("key", among)], filters, ())
        return set(self._keys(self._hits(query, len(self))))

    def share(self, filters: Filters, few: int) -> tuple[float, "Integers | None"]:
        """Return the share of entries that satisfy the filters, 0 to 1, and the items of these entries.

        Instead of items, return None if more than `few` entries satisfy the filters.
        """
        import numpy as np

        if not len(self):
            return 0.0, np.empty(0, dtype=np.int64)
        result = self._searcher.search(self._restricted([], filters, ()), few)
        count = cast("int", getattr(result, "count"))  # noqa: B009 - missing in the stubs
        return count / len(self), np.array(self._keys(result.hits), dtype=np.int64) if count <= few else None

    def keys(self, filters: Filters) -> "Integers":
        """Return all items that satisfy the filters, possibly with duplicates."""
        import numpy as np

        if not len(self):
            return np.empty(0, dtype=np.int64)
        return np.array(self._keys(self._hits(self._restricted([], filters, ()), len(self))), dtype=np.int64)

    def _hits(self, query: tantivy.Query, limit: int) -> list[tuple[float, tantivy.DocAddress]]:
        return self._searcher.search(query, limit, count=False).hits

    def _keys(self, hits: Sequence[tuple[float, tantivy.DocAddress]]) -> list[int]:
        [keys] = self._columns(("key",), hits)
        return keys

    def _columns(self, names: Iterable[str], hits: Sequence[tuple[float, tantivy.DocAddress]]) -> list[list[int]]:
        places = [address for _, address in hits]
        return [cast("list[int]", self._searcher.fast_field_values(name, places)) for name in names]

    def _matches(self, hits: Sequence[tuple[float, tantivy.DocAddress]], best: float) -> "TextMatches":
        # Building an index does not need numpy, so it is loaded only here.
        import numpy as np

        from .matches import TextMatches

        numbers = np.array(self._columns(NUMBERS, hits), dtype=np.int64)
        # The score of a prefix is added to the score of words, so the sum may exceed the maximum.
        return TextMatches(numbers, np.minimum(np.array([score for score, _ in hits]) / best, 1.0))


def _any(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    """Return a query for entries that match any of these queries."""
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])


def _summing(queries: Sequence[tantivy.Query], needed: tantivy.Query) -> tantivy.Query:
    """Return a query for all entries that match `needed`. The score is the sum of the scores of `queries`."""
    # The queries are nested: a flat query would use a scorer that reads blocks of 4,096 entries.
    for query in queries:
        needed = tantivy.Query.boolean_query([(tantivy.Occur.Must, needed), (tantivy.Occur.Should, query)])
    return needed


@contextmanager
def _lockable(folder: Path, *, read_only: bool) -> Generator[Path]:
    """Yield a folder that contains the index files and in which Tantivy can create its lock file.

    Tantivy creates a lock file to open an index. For a read-only folder, yield a temporary folder with symbolic links
    to the files. The operating system refuses hard links to files of another user.
    """
    lock = folder / _LOCK
    if not folder.is_dir() or (not read_only and os.access(lock if lock.exists() else folder, os.W_OK)):
        yield folder
        return
    from tempfile import TemporaryDirectory  # few indexes are read-only

    # Tantivy may remove its lock file while the folder is removed.
    with TemporaryDirectory(prefix="palaver-", ignore_cleanup_errors=True) as name:
        for file in folder.iterdir():
            if file.suffix != ".lock":
                (Path(name) / file.name).symlink_to(file.absolute())
        yield Path(name)
