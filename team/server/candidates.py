"""Candidates for the search engine from PostgreSQL, as the person sees them whose IDs are set in the transaction.

PostgreSQL only finds candidates: entries that contain the rarest terms of a query, and the nearest vectors. Their BM25
scores are computed here from the stored stems, so that fusion and re-ranking are those of a machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import accumulate
from typing import Final, LiteralString, NamedTuple
from uuid import UUID

import numpy as np
from msgspec import Struct, json
from msgspec.structs import replace

from ...archiver.store import StoredVector
from ...core.errors import InvalidInput
from ...core.query import FIELDS, Comparison, FilterField, Filters, Role
from ...core.results import Correction
from ...core.text import is_path_pattern
from ...search.index.indexed_texts import TextWindow
from ...search.index.matches import Flags, Floats, Integers, TextMatches, VectorMatches, distinct
from ...search.index.matches import among as is_among
from ...search.index.term_statistics import TermStatistics
from ...search.index.text_index import VALUE_FIELDS, Pairs
from ...search.index.vector_index import Array, VectorIndex
from ...search.model.embedding import TokenVectors
from ...search.query.query_analysis import AnalyzedQuery
from ...search.query.tokenizer import label, path_label, project_labels, spaced, stems, terms
from .search_rows import ALL, STEMS, Database, as_array, as_text, label_of, quoted

PROBES: Final = 6
"""Maximum number of terms of a query that search the index: the rarest ones."""
POSTINGS: Final = 3_000
"""Maximum number of entries that all terms except the rarest one find together. Reading them takes 6 ms."""
_MORE: Final = 2
"""Number of candidates to score, as a multiple of the number of entries to return."""
_FIRST, _LAST = -(1 << 62), 1 << 62
_K1, _B = 1.2, 0.75
"""Parameters of BM25, as in Tantivy."""


class _Conditions(NamedTuple):
    """Filters as PostgreSQL applies them: a `tsquery` that entries must match, or an empty text, and a date range."""

    needed: str
    since: int
    until: int

    @classmethod
    def of(cls, filters: Filters) -> _Conditions:
        groups = [
            [term for value in values for term in _terms_of(field, value)]
            for attribute, field in FIELDS.items()
            if field.name in VALUE_FIELDS and (values := getattr(filters, attribute))
        ]
        if filters.roles:
            groups.append([quoted(label_of("role", role)) for role in filters.roles])
        is_dated = filters.after is not None or filters.before is not None
        since = max(1, filters.after or 1) if is_dated else _FIRST
        return cls("&".join(map(_any, groups)), since, _LAST if filters.before is None else filters.before)


class _Entry(Struct, frozen=True):
    """Entry of an item, with its stems as the table stores them."""

    id: int
    item: int
    event: int
    ordinal: int
    start_line: int
    end_line: int
    length: int
    model: str
    stems: str


_COLUMNS: Final = "id, item, event, ordinal, start_line, end_line, length, model, stems"


class TeamCandidates(TermStatistics):
    """Implementation of `Candidates` for one search within one transaction, whose settings name team and person."""

    def __init__(self, connection: Database, team: UUID, model: str) -> None:
        """Search the rows of a team. Only vectors of the embedding model `model` are compared."""
        self._connection, self._team, self._model = connection, team, model
        self._counts: dict[str, int] = {}
        self._entries: dict[int, _Entry] = {}

    @property
    def lag(self) -> int:
        """0, because entries are written in the transaction of a push."""
        return 0

    @property
    def seq(self) -> int:
        """0, because an object is used for one search."""
        return 0

    @property
    def model(self) -> str:
        """Name of the embedding model whose vectors are compared."""
        return self._model

    def refresh(self) -> None:
        """Do nothing, because all rows are visible."""

    @property
    def entries(self) -> int:
        """Number of entries of the team."""
        return self.entries_with(ALL)

    def entries_with(self, term: str) -> int:
        """Return the number of entries with a term."""
        self._count([term])
        return self._counts[term]

    def _count(self, words: Iterable[str]) -> None:
        """Read the counts of these terms, and of all entries, that are not known yet."""
        unknown = {ALL, STEMS, *words} - self._counts.keys()
        if unknown:
            rows = self._connection.execute(
                "SELECT term, entries FROM palaver.term WHERE team = %s AND term = ANY(%s)", (self._team, [*unknown])
            )
            self._counts |= dict.fromkeys(unknown, 0) | {term: max(0, count) for term, count in rows}

    def contains_phrase(self, phrase: str) -> bool:
        """Return whether any entry contains this phrase."""
        probe = _phrase(phrase)
        return not probe or bool(self._probe([probe], [1.0], _Conditions.of(Filters()), 1))

    def correction(self, word: str) -> Correction | None:  # noqa: ARG002 - part of the protocol
        """Return None: the server does not correct spelling."""
        return None

    def resolve(self, query: AnalyzedQuery, size: int | None = None) -> AnalyzedQuery:
        """See `TermStatistics.resolve`."""
        self._count([*terms(query.text), *stems(spaced(query.text))])  # the second ones are for pairs of terms
        return super().resolve(query, size)

    def names(self, field: str) -> set[str]:
        """Return all values of a filter field."""
        rows = self._connection.execute(
            """SELECT DISTINCT label FROM palaver.entry, unnest(tsvector_to_array(tsv)) AS label
            WHERE team = %s AND starts_with(label, %s)""",
            (self._team, f"{field}:"),
        )
        return {row[0].partition(":")[2] for row in rows}

    def has(self, filters: Filters) -> bool:
        """Return whether any entry satisfies the filters."""
        statement = "SELECT 1 FROM palaver.matching_items(%s, %s, %s) LIMIT 1"
        return self._connection.execute(statement, _Conditions.of(filters)).fetchone() is not None

    def newest(self, filters: Filters, limit: int) -> tuple[list[tuple[int, int]], bool]:
        """Return (instant, event key) pairs, newest first, and True if the list is complete."""
        conditions = _Conditions.of(filters)
        among = "AND item IN (SELECT item FROM palaver.matching_items(%s, %s, %s))" if filters else ""
        rows = self._connection.execute(
            f"""SELECT event, max(at) AS last FROM palaver.entry WHERE team = %s {among}
            GROUP BY event ORDER BY last DESC, event DESC LIMIT %s""",
            (self._team, *(conditions if filters else ()), limit),
        ).fetchall()
        return [(at, event) for event, at in rows], len(rows) < limit

    def text(
        self, query: AnalyzedQuery, filters: Filters, limit: int, among: Sequence[int] | None = None
    ) -> TextMatches:
        """Return the entries that match words of the query, best first. `among` restricts the search to these items."""
        words = terms(query.text)
        self._count(words)
        words = tuple(word for word in words if self._counts[word])
        phrases = [probe for phrase in query.phrases if (probe := _phrase(phrase))]
        if not (words or query.prefixes) or not self.entries:
            return TextMatches.none()
        conditions = _Conditions.of(filters)
        needed = "&".join([*filter(None, [conditions.needed]), *map(_any, [[phrase] for phrase in phrases])])
        conditions = conditions._replace(needed=needed)
        if among is not None:
            entries = self._among(among, conditions)
        else:
            entries = self._candidates(query, words, conditions, limit)
        if filters.roles:
            entries = self._said(entries, filters.roles, words)
        return self._scored(entries, query, words, limit)

    def _candidates(
        self, query: AnalyzedQuery, words: Sequence[str], conditions: _Conditions, limit: int
    ) -> list[_Entry]:
        rarest = sorted(words, key=lambda word: (self._counts[word], word))[:PROBES]
        total = accumulate(self._counts[word] for word in rarest)
        rarest = [word for word, entries in zip(rarest, total, strict=True) if word == rarest[0] or entries <= POSTINGS]
        probes = [*map(quoted, rarest), *(f"{quoted(prefix.lower())}:*" for prefix in query.prefixes)]
        weights = [*map(self.idf_of_term, rarest), *(1.0 for _ in query.prefixes)]
        return self._load(self._probe(probes, weights, conditions, _MORE * limit))

    def _probe(self, probes: Sequence[str], weights: Sequence[float], conditions: _Conditions, most: int) -> list[int]:
        rows = self._connection.execute(
            "SELECT entry FROM palaver.text_candidates(%s, %s::real[], %s, %s, %s, %s)",
            ([*probes], [*weights], *conditions, most),
            binary=True,
        ).fetchall()
        return [row[0] for row in rows]

    def _load(self, numbers: Sequence[int]) -> list[_Entry]:
        rows = self._connection.execute(
            f"SELECT {_COLUMNS} FROM palaver.entry WHERE team = %s AND id = ANY(%s)",
            (self._team, as_array(number for number in numbers if number not in self._entries)),
            binary=True,
        ).fetchall()
        self._entries |= {row[0]: _Entry(*row) for row in rows}
        return [self._entries[number] for number in numbers if number in self._entries]

    def _among(self, items: Sequence[int], conditions: _Conditions) -> list[_Entry]:
        needed, since, until = conditions
        rows = self._connection.execute(
            f"""SELECT {_COLUMNS} FROM palaver.entry WHERE team = %s AND item = ANY(%s) AND at >= %s AND at < %s
            AND (%s = '' OR tsv @@ %s::tsquery)""",
            (self._team, as_array(items), since, until, needed, needed or None),
            binary=True,
        ).fetchall()
        entries = [_Entry(*row) for row in rows]
        self._entries |= {entry.id: entry for entry in entries}
        return entries

    def _said(self, entries: Sequence[_Entry], roles: Sequence[str], words: Sequence[str]) -> list[_Entry]:
        """Return the entries in which one of the roles wrote one of the words."""
        rows = self._connection.execute(
            "SELECT id, said FROM palaver.entry WHERE team = %s AND id = ANY(%s)",
            (self._team, [entry.id for entry in entries]),
        )
        texts = {number: json.decode(said, type=tuple[tuple[str, str], ...]) for number, said in rows}
        matching = {
            number
            for number, said in texts.items()
            if any(role in roles and not set(words).isdisjoint(terms(text)) for role, text in said)
        }
        return [entry for entry in entries if entry.id in matching]

    def _scored(self, entries: Sequence[_Entry], query: AnalyzedQuery, words: Sequence[str], limit: int) -> TextMatches:
        """Return the entries with a score above 0, with their share of the highest possible BM25 score of the query."""
        if not entries:
            return TextMatches.none()
        idf = np.array([self.idf_of_term(word) for word in words])
        counts = _counts(entries, words)
        mean = self._counts[STEMS] / max(1, self.entries)
        lengths = np.array([entry.length for entry in entries]) / max(mean, 1e-9)
        weakening = _K1 * (1 - _B + _B * lengths[:, None])
        points = (counts * (_K1 + 1) / (counts + weakening)) @ idf
        for prefix in query.prefixes:
            points += [float(f" {prefix.lower()}" in entry.stems) for entry in entries]
        absent = sum(self.idf_of_term(word) for word in set(terms(query.text)) - set(words))
        fraction = np.minimum(points / max((idf.sum() + absent) * (_K1 + 1), 1e-9), 1.0)
        numbers = np.array(
            [(entry.item, entry.event, 0, entry.ordinal, entry.start_line, entry.end_line, 0) for entry in entries],
            dtype=np.int64,
        ).T
        order = np.lexsort((numbers[4, :], numbers[0, :], -fraction))
        best = order[points[order] > 0][:limit]
        return TextMatches(numbers[:, best], fraction[best])

    def adjacent_terms(self, pairs: Pairs, items: Integers) -> Floats:
        """Return, for each item, the summed weight of the term pairs that are adjacent in its best entry, 0 to 1.

        Only entries that this search has read are compared.
        """
        best = dict.fromkeys(items.tolist(), 0.0)
        adjacent = {f" {first}  {second} ": weight for (first, second), weight in pairs.items()}
        for entry in self._entries.values():
            if entry.item in best:
                weight = sum(weight for pair, weight in adjacent.items() if pair in entry.stems)
                best[entry.item] = max(best[entry.item], min(weight, 1.0))
        return np.array([best[item] for item in items.tolist()])

    def nearest(self, vector: Array, filters: Filters, limit: int) -> VectorMatches:
        """Return the vectors that satisfy the filters and are nearest to `vector`, best first."""
        text = as_text(vector)
        if not filters:
            rows = self._connection.execute(
                "SELECT * FROM palaver.nearest_vectors(%s::halfvec, %s, %s)", (text, self._model, limit), binary=True
            ).fetchall()
            return _vector_matches(rows)
        conditions, clauses = _Conditions.of(_without_roles(filters)), list[LiteralString]()
        if is_filtered := conditions != _Conditions.of(Filters()):
            clauses.append("AND item IN (SELECT item FROM palaver.matching_items(%s, %s, %s))")
        if filters.roles and Role.HUMAN not in filters.roles:
            clauses.append("AND (item <> event OR part > 0)")
        if filters.roles and Role.ASSISTANT not in filters.roles:
            clauses.append("AND (item <> event OR part = 0)")
        # A graph of all vectors would find too few that satisfy the filters, so all these are compared.
        rows = self._connection.execute(
            f"""WITH compared AS MATERIALIZED (
                SELECT item, event, part, 1 - (vec <=> %s::halfvec) AS similarity FROM palaver.embedding
                WHERE team = %s AND model = %s {" ".join(clauses)})
            SELECT * FROM compared ORDER BY similarity DESC, item, part LIMIT %s""",
            (text, self._team, self._model, *(conditions if is_filtered else ()), limit),
        ).fetchall()
        return _vector_matches(rows)

    def near(self, vector: Array, filters: Filters, limit: int) -> VectorMatches:
        """See `nearest`."""
        return self.nearest(vector, filters, limit)

    def of_events(self, vector: Array, events: Integers) -> VectorMatches:
        """Return two exact cosines per item of these events: that of its prompt, and the best of its other texts."""
        rows = self._connection.execute(
            """SELECT DISTINCT ON (item, part = 0) item, event, part, 1 - (vec <=> %s::halfvec) AS cosine
            FROM palaver.embedding WHERE team = %s AND model = %s AND event = ANY(%s)
            ORDER BY item, part = 0, cosine DESC""",
            (as_text(vector), self._team, self._model, as_array(events.tolist())),
            binary=True,
        ).fetchall()
        return _vector_matches(rows)

    def late_interaction(self, query: TokenVectors, vector: Array, vectors: VectorMatches) -> Floats:
        """Return the late-interaction score for the item of each vector, or NaN if unknown."""
        events, _ = distinct(vectors.event)
        rows = self._connection.execute(
            """SELECT item, event, part, halfvec_send(vec), bits FROM palaver.embedding
            WHERE team = %s AND model = %s AND event = ANY(%s)""",
            (self._team, self._model, as_array(events.tolist())),
            binary=True,
        ).fetchall()
        texts = [
            StoredVector(item, event, part, np.frombuffer(sent, ">f2", offset=4).astype("<f2").tobytes(), tokens)
            for item, event, part, sent, tokens in rows
        ]
        return VectorIndex().changed((), texts).late_interaction(query, vector, vectors.rows)

    def waiting(self, matches: TextMatches, vectors: VectorMatches) -> Integers:
        """Return the keys of events that only text search finds because they have no vector of this model."""
        alone = ~is_among(matches.event, distinct(vectors.event)[0])
        old = [entry.item for entry in self._entries.values() if entry.model != self._model]
        return distinct(matches.event[alone & is_among(matches.key, np.array(sorted(old), dtype=np.int64))])[0]

    def windows(self, items: Sequence[int], *, with_context: bool) -> Iterator[tuple[int, TextWindow]]:
        """Yield (item key, window) for the text of each entry of these items."""
        rows = self._connection.execute(
            """SELECT item, body, start_line, end_line, said FROM palaver.entry
            WHERE team = %s AND item = ANY(%s) AND (%s OR NOT context) ORDER BY item, id""",
            (self._team, [*items], with_context),
        )
        for item, body, start, end, said in rows:
            yield item, TextWindow(body, start, end, json.decode(said, type=tuple[tuple[str, str], ...]))

    def sessions_of(self, items: Sequence[int]) -> dict[int, int]:
        """Map the key of each of these items that exists to its session, or to 0 without a session."""
        rows = self._connection.execute(
            "SELECT DISTINCT item, session FROM palaver.entry WHERE team = %s AND item = ANY(%s)",
            (self._team, [*items]),
        )
        return {item: session for item, session in rows}  # noqa: C416 - rows are tuples of unknown length

    def items_of(self, sessions: Sequence[int]) -> list[int]:
        """Return the keys of all items of these sessions."""
        rows = self._connection.execute(
            "SELECT DISTINCT item FROM palaver.entry WHERE team = %s AND session = ANY(%s) ORDER BY item",
            (self._team, [*sessions]),
        )
        return [row[0] for row in rows]

    def allowed(self, filters: Filters, among: Sequence[int]) -> AbstractSet[int]:
        """Return the items in `among` that satisfy the filters."""
        return {entry.item for entry in self._among(among, _Conditions.of(filters))} if among else set()

    def passing(self, filters: Filters, items: Integers) -> Flags:
        """Return a flag per item: True if the item satisfies the filters."""
        passing = self.allowed(filters, items.tolist())
        return np.fromiter((item in passing for item in items.tolist()), bool, len(items))

    def is_narrow(self, filters: Filters) -> bool:  # noqa: ARG002 - part of the protocol
        """Return False: PostgreSQL would have to count the entries first."""
        return False


def _counts(entries: Sequence[_Entry], words: Sequence[str]) -> Integers:
    """Return how often each word occurs in each entry, shape (entries, words). Words are distinct."""
    columns, lengths, places = list[int](), list[int](), {word: column for column, word in enumerate(words)}
    for entry in entries:
        occurring = [places[stem] for stem in entry.stems.split() if stem in places]
        columns += occurring
        lengths.append(len(occurring))
    rows = np.repeat(np.arange(len(entries)), lengths)
    cells = rows * len(words) + np.array(columns, dtype=np.int64)
    counts: Integers = np.bincount(cells, minlength=len(entries) * len(words)).reshape(len(entries), len(words))
    return counts


def _vector_matches(rows: Sequence[tuple[int, int, int, float]]) -> VectorMatches:
    if not rows:
        return VectorMatches.none()
    numbers = np.array([row[:3] for row in rows], dtype=np.int64).T
    return VectorMatches(numbers, np.array([row[3] for row in rows]))


def _without_roles(filters: Filters) -> Filters:
    return replace(filters, roles=())


def _terms_of(field: FilterField, value: str) -> Iterator[str]:
    """Yield the terms of a `tsquery` of which an entry with this value of a filter has at least one."""
    match field.comparison:
        case Comparison.PROJECT:
            yield from (quoted(label_of(field.name, name)) for name in project_labels([value]))
        case Comparison.PATH:
            if is_path_pattern(value):
                raise InvalidInput(
                    f"Patterns of files do not work on the server of a team: {value}", hint="Give a path or a name."
                )
            path = label_of(field.name, path_label(value))
            yield from (quoted(path), f"{quoted(f'{path}/')}:*")
        case Comparison.BEGINNING:
            yield f"{quoted(label_of(field.name, label(value)))}:*"
        case _:
            yield quoted(label_of(field.name, label(value)))


def _any(group: Sequence[str]) -> str:
    return f"({'|'.join(group)})"


def _phrase(phrase: str) -> str:
    return "<->".join(map(quoted, stems(spaced(phrase))))
