"""The text index: Tantivy, kept behind one class. Queries are built as objects, never parsed."""

import math
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import tantivy

from ...core.errors import IndexUnwritable
from ...core.memo import Memo
from ...core.query import Filters
from ..query import path_patterns
from ..query.query_analysis import AnalyzedQuery
from ..query.tokenizer import PROSE, analyzer, label, path_label, project_labels, spaced, stems, terms
from .adjacent_terms import Pairs
from .lockable import lockable
from .text_entry import BODY, DIGEST, EVERY, NUMBERS, SAID_BY, WHOLLY_BY, TextEntry, document, schema

if TYPE_CHECKING:
    from .matches import Numbers, TextMatches

_HEAP = 32_000_000
_BEGUN = 100
"""Words that a beginning of a word stands for at most: the most frequent ones."""
_SINGLY = 2_000
"""Keys or names up to which a query for each is quicker than one for all of them."""
_ENTRIES = 50
"""Entries of an item on average up to which the best of each of several is known."""
_SPARSE, _CHAINED = 300, 64
"""Where at most one entry in so many can be found, each is looked for by every term, of so many at most: that costs
less than to go through all entries with any of them.
"""
_COUNTED = 4_096
"""Terms that are remembered with how many entries have them."""
_K1 = 1.2
"""Tantivy's BM25 parameter: a term weighs at most its inverse document frequency times 1 + k1."""


class TextIndex:
    """Entries that can be found by words."""

    def __init__(self, index: tantivy.Index) -> None:
        self._index, self._schema = index, index.schema
        index.register_tokenizer(PROSE, analyzer())
        self._look()

    @classmethod
    def make(cls, folder: Path | None = None) -> Self:
        """A new index, in an empty folder or in memory. Raises `IndexUnwritable`."""
        with _written():
            return cls(tantivy.Index(schema(), path=str(folder) if folder else None, reuse=False))

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The index in a folder whose checksums were verified before; raises ValueError where there is none."""
        with lockable(folder) as place:
            return cls(tantivy.Index.open(str(place)))

    def apply(self, gone: Iterable[int], entries: Iterable[TextEntry]) -> None:
        """Remove all entries of the items `gone`, add these, and make the result visible."""
        self.begin().replace(gone, entries).finish()
        self._look()

    def begin(self) -> "Writing":
        """Begin to change it."""
        return Writing(self._index)

    def _look(self) -> None:
        """See the last commit."""
        self._index.reload()
        self._searcher = self._index.searcher()
        self._entries = self._searcher.doc_freq(EVERY, EVERY)
        self._covered: dict[str, list[str]] = {}
        """The files in folders and patterns that were asked for."""
        self._counted = Memo[str, int](_COUNTED)

    def __len__(self) -> int:
        return self._searcher.num_docs

    @property
    def entries(self) -> int:
        """Entries as words are weighed by: deleted ones too, until merged."""
        return self._entries

    @property
    def stale(self) -> float:
        """The share of entries that were deleted but not merged away yet, 0 to 1."""
        return 1 - len(self) / self._entries if self._entries else 0.0

    def contents(self) -> Counter[tuple[int, int]]:
        """Every entry as the key of its item and its digest."""
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
        rest: "TextIndex | None" = None,
    ) -> "TextMatches":
        """The best entries with any of the words and all of the phrases, that satisfy the filters and belong to no
        hidden item; of the items `among` alone, where some are given. About a `share` of all satisfies the filters.
        Where this is a small part of what there is, `rest` is the other: words are as rare as both have them, or what
        few entries have would count as common.
        """
        wording = AnalyzedQuery(text) if isinstance(text, str) else text
        sought = self._sought(wording, rest) if len(self) else []
        if not sought:
            from .matches import TextMatches

            return TextMatches.none()
        wanted, most = [query for query, _ in sought], sum(most for _, most in sought)
        needed = [*map(self._phrase, wording.phrases), *self._heard(wording.text, filters)]
        if among is not None:
            needed.append(self._any_of("key", among))
        passing = share * len(self) if among is None else len(among)
        if passing * _SPARSE <= len(self) and len(wanted) <= _CHAINED and not wording.phrases:
            found = self._hits(_counting(wanted, self._restricted(needed, filters, hidden)), limit)
            return self._matches([hit for hit in found if hit[0] > 0], most)
        return self._matches(self._hits(self._restricted([_any(wanted), *needed], filters, hidden), limit), most)

    def newest(self, filters: Filters, limit: int, hidden: Sequence[int] = ()) -> list[tuple[int, int]]:
        """The events that satisfy the filters as (instant, event), newest first; undated ones last."""
        query = self._restricted([], filters, hidden)
        found = self._searcher.search(query, limit, count=False, order_by_field="at").hits if len(self) else []
        ats, events = self._columns(("at", "event"), cast("list[tuple[float, tantivy.DocAddress]]", found))
        return list(zip(ats, events, strict=True))

    def having(self, term: str) -> int:
        """How many entries have a term; deleted ones count until they are merged away."""
        return self._counted.made(term, partial(self._searcher.doc_freq, BODY))

    def holds(self, phrase: str) -> bool:
        """Whether any entry has this phrase."""
        return bool(len(self) and self._hits(self._phrase(phrase), 1))

    def together(self, pairs: Pairs, items: Sequence[int]) -> dict[int, float]:
        """Of each of these items that has any of the pairs what its best entry has of them, 0 to 1."""
        known = {pair: share for pair, share in pairs.items() if all(map(self.having, pair))}
        if not known or not items:
            return {}
        of_items = self._any_of("key", items)
        wanted = [
            tantivy.Query.boolean_query(
                [
                    # For each pair anew: so no other entries are looked at, however common its words are.
                    (tantivy.Occur.Must, of_items),
                    (tantivy.Occur.Must, tantivy.Query.const_score_query(self._following(pair), share)),
                ]
            )
            for pair, share in known.items()
        ]
        best: dict[int, float] = {}
        hits = self._hits(_any(wanted), _ENTRIES * len(items))
        for key, (score, _) in zip(self._keys(hits), hits, strict=True):
            best.setdefault(key, min(score, 1.0))
        return best

    def spelled_like(self, term: str, limit: int) -> list[int]:
        """Items with words that are spelled much like a term: so many of each word."""
        if not len(self):
            return []
        from ..query import spelling  # hardly any query is misspelled

        alike = spelling.stems_like(term, dict(self._begin(BODY, term[:1])))
        fuzzy = tantivy.Query.fuzzy_term_query(self._schema, BODY, term, spelling.tolerated(term))
        wanted = [fuzzy, *(self._term(BODY, one) for one in alike)]
        return [key for query in wanted for key in self._keys(self._hits(query, limit))]

    def names(self, field: str) -> list[str]:
        """Every value of a field that is filtered by, such as `project`; deleted ones too, until merged."""
        return [term for term, _ in self._searcher.terms_with_prefix(field, "")]

    def _sought(self, wording: AnalyzedQuery, rest: "TextIndex | None") -> list[tuple[tantivy.Query, float]]:
        """A query for each term, and the most it can score."""
        sought = [(self._weighed(term, rest), self._most(term, rest)) for term in terms(wording.text)]
        for beginning in wording.beginnings:
            begun = [self._term(BODY, term) for term, _ in self._begin(BODY, beginning.lower(), _BEGUN)]
            sought.append((tantivy.Query.disjunction_max_query(begun), 0.0))
        return sought

    def _term(self, field: str, term: str) -> tantivy.Query:
        return tantivy.Query.term_query(self._schema, field, term, "freq")

    def _phrase(self, phrase: str) -> tantivy.Query:
        """Its terms one after the other. The parts of its names stand elsewhere, and so are left out."""
        words = stems(spaced(phrase))
        if not words:
            return tantivy.Query.all_query()
        if len(words) == 1:
            return tantivy.Query.const_score_query(self._term(BODY, words[0]), 0.0)
        return tantivy.Query.const_score_query(self._following(words), 0.0)

    def _following(self, words: Sequence[str]) -> tantivy.Query:
        return tantivy.Query.phrase_query(self._schema, BODY, [*words])

    def _heard(self, text: str, filters: Filters) -> list[tantivy.Query]:
        """That one of those whose words are wanted said one of the words."""
        if not filters.roles:
            return []
        said = terms(text)
        alone = [self._any_of(WHOLLY_BY, filters.roles), _any([self._term(BODY, term) for term in said])]
        among = [self._term(SAID_BY + role, term) for role in filters.roles for term in said]
        heard = _any([tantivy.Query.boolean_query([(tantivy.Occur.Must, query) for query in alone]), *among])
        return [tantivy.Query.const_score_query(heard, 0.0)]

    def _weighed(self, term: str, rest: "TextIndex | None") -> tantivy.Query:
        query = self._term(BODY, term)
        return query if rest is None else tantivy.Query.boost_query(query, self._most(term, rest) / self._most(term))

    def _most(self, term: str, rest: "TextIndex | None" = None) -> float:
        """The most a term can add to a BM25 score (Robertson and Zaragoza 2009, as Lucene and Tantivy have it)."""
        indexes = [self] if rest is None else [self, rest]
        entries, having = sum(index.entries for index in indexes), sum(index.having(term) for index in indexes)
        return math.log(1 + (entries - having + 0.5) / (having + 0.5)) * (1 + _K1)

    def _restricted(self, needed: Sequence[tantivy.Query], filters: Filters, hidden: Sequence[int]) -> tantivy.Query:
        wanted = [*needed, *self._clauses(filters)] or [tantivy.Query.all_query()]
        clauses = [(tantivy.Occur.Must, clause) for clause in wanted]
        if hidden:
            clauses.append((tantivy.Occur.MustNot, self._any_of("key", hidden)))
        # Words with nothing beside them are left bare: Tantivy passes over entries that cannot be among the best.
        return tantivy.Query.boolean_query(clauses) if len(clauses) > 1 else clauses[0][1]

    def _clauses(self, filters: Filters) -> list[tantivy.Query]:
        named = {
            "kind": filters.kinds,
            "type": filters.types,
            "concept": filters.concepts,
            "project": [*project_labels(filters.projects)],
            "branch": filters.branches,
            "agent": filters.agents,
            "origin": filters.origins,
            "role": filters.roles,
        }
        clauses = [self._any_of(name, map(label, values)) for name, values in named.items() if values]
        if filters.sessions:
            known = (term for name in filters.sessions for term, _ in self._begin("session", label(name)))
            clauses.append(self._any_of("session", known))
        if filters.files:
            clauses.append(self._any_of("file", (term for path in filters.files for term in self._files(path))))
        if filters.after is not None or filters.before is not None:
            clauses.append(self._dates(filters.after, filters.before))
        return clauses

    def _any_of(self, name: str, values: Iterable[str | int]) -> tantivy.Query:
        """The entries that have one of these; nobody asks how well it fits."""
        wanted = list(values)
        if len(wanted) > _SINGLY:
            found = tantivy.Query.term_set_query(self._schema, name, wanted)
        else:
            found = _any([tantivy.Query.term_query(self._schema, name, value, "basic") for value in wanted])
        return tantivy.Query.const_score_query(found, 0.0)

    def _begin(self, field: str, beginning: str, limit: int | None = None) -> list[tuple[str, int]]:
        return self._searcher.terms_with_prefix(field, beginning, limit=limit)

    def _files(self, path: str) -> list[str]:
        """The indexed files at this path; for a relative one, those whose path ends so. A folder, which ends with a
        slash, or a pattern is compared with every path.
        """
        wanted = path_label(path)
        if not path_patterns.is_pattern(path):
            return [wanted, *(term for term, _ in self._begin("file", f"{wanted}/"))]
        pattern = "/".join(reversed(wanted.split("/"))) + "/" * path.endswith("/")
        if path not in self._covered:
            every = self.names("file")
            self._covered[path] = [
                term for term in every if path_patterns.fits(pattern, "/".join(reversed(term.split("/"))))
            ]
        return self._covered[path]

    def _dates(self, after: int | None, before: int | None) -> tantivy.Query:
        """Undated entries are in no range."""
        dated = tantivy.Query.range_query(
            self._schema,
            "at",
            tantivy.FieldType.Integer,
            lower_bound=max(1, after or 1),
            upper_bound=None if before is None else before - 1,
        )
        return tantivy.Query.const_score_query(dated, 0.0)

    def allowed(self, filters: Filters, among: Sequence[int]) -> set[int]:
        """Those of these items that satisfy the filters."""
        if not among or not len(self):
            return set()
        query = self._restricted([self._any_of("key", among)], filters, ())
        return set(self._keys(self._hits(query, len(self))))

    def share(self, filters: Filters, few: int) -> tuple[float, "Numbers | None"]:
        """The share of entries that satisfy the filters, 0 to 1; and where these are `few` or less, what `keys` gives,
        which costs no more then.
        """
        import numpy as np

        if not len(self):
            return 0.0, np.empty(0, dtype=np.int64)
        found = self._searcher.search(self._restricted([], filters, ()), few)
        count = cast("int", getattr(found, "count"))  # noqa: B009 - the stubs do not know it
        return count / len(self), np.array(self._keys(found.hits), dtype=np.int64) if count <= few else None

    def keys(self, filters: Filters) -> "Numbers":
        """All items that satisfy the filters, some more than once."""
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
        places = [place for _, place in hits]
        return [cast("list[int]", self._searcher.fast_field_values(name, places)) for name in names]

    def _matches(self, hits: Sequence[tuple[float, tantivy.DocAddress]], most: float) -> "TextMatches":
        # Making an index needs no numpy, and so text is searchable sooner.
        import numpy as np

        from .matches import TextMatches

        numbers = np.array(self._columns(NUMBERS, hits), dtype=np.int64)
        # A beginning is worth as much as its best word, which may stand beside the word itself.
        return TextMatches(numbers, np.minimum(np.array([score for score, _ in hits]) / most, 1.0))


def _any(queries: Sequence[tantivy.Query]) -> tantivy.Query:
    """Entries that one of these finds, or several."""
    return tantivy.Query.boolean_query([(tantivy.Occur.Should, query) for query in queries])


def _counting(queries: Sequence[tantivy.Query], needed: tantivy.Query) -> tantivy.Query:
    """Entries that are needed, whether one of these finds them or not, with the sum of what these score."""
    # Side by side they would be one scorer, which goes through 4,096 entries at a time to give one.
    for query in queries:
        needed = tantivy.Query.boolean_query([(tantivy.Occur.Must, needed), (tantivy.Occur.Should, query)])
    return needed


class Writing:
    """Changes to an index, made one after another. Nobody sees them before all are finished, nor if they never are."""

    def __init__(self, index: tantivy.Index) -> None:
        self._schema = index.schema
        with _written():
            self._writer = index.writer(_HEAP, num_threads=1)

    def replace(self, gone: Iterable[int], entries: Iterable[TextEntry]) -> Self:
        """Remove all entries of the items `gone`, and add these."""
        # By query, not by term: tantivy 0.27 makes a signed term of a Python int, which matches no unsigned field.
        query = tantivy.Query.term_set_query(self._schema, "key", list(gone))
        with _written():
            self._writer.delete_documents_by_query(query)
        for entry in entries:
            with _written():
                self._writer.add_document(document(entry))
        return self

    def finish(self) -> None:
        """Write all of them down."""
        with _written():
            self._writer.commit()
            self._writer.wait_merging_threads()


@contextmanager
def _written() -> Generator[None]:
    """Tantivy raises `ValueError` for everything; of what we give it nothing but the disk can be wrong."""
    try:
        yield
    except ValueError as error:
        raise IndexUnwritable(str(error)) from error
