"""Statistics of the terms of an index: their inverse document frequency, and what they reveal about a query."""

import math
from abc import ABC, abstractmethod

from msgspec.structs import replace

from ...core.results import Correction
from ..query.query_analysis import SENTENCE, AnalyzedQuery, shortness
from ..query.tokenizer import terms

_FEW = 5
"""Spelling is corrected if fewer entries than this contain a query term, summed over all terms."""
_LARGE = 1_000
"""Minimum number of entries of a large archive.

In a smaller archive, short queries raise the relevance threshold less.
"""


class TermStatistics(ABC):
    """Entry counts of terms, and what follows from them."""

    @property
    @abstractmethod
    def entries(self) -> int:
        """Number of entries."""

    @abstractmethod
    def entries_with(self, term: str) -> int:
        """Return the number of entries with a term."""

    @abstractmethod
    def contains_phrase(self, phrase: str) -> bool:
        """Return whether any entry contains this phrase."""

    @abstractmethod
    def correction(self, word: str) -> Correction | None:
        """Return a similar known word for an unknown word, or None if no known word is similar."""

    def resolve(self, query: AnalyzedQuery, size: int | None = None) -> AnalyzedQuery:
        """Return the query with the attributes that depend on the index, such as spelling corrections.

        A name that occurs in the index becomes a phrase. If few entries contain the terms, unknown words are corrected.
        The whole index is used, regardless of the filters of the search. `size` is the number of entries that can
        match, by default of the whole index.
        """
        if query.name and self.contains_phrase(query.name):
            query = replace(query, phrases=(query.name,))
        prefixes = terms(" ".join(query.prefixes))
        entries = {term: self.entries_with(term) for term in terms(query.text) if term not in prefixes}
        if sum(entries.values()) < _FEW and not query.prefixes:
            query = query.corrected([correction for word in query.words if (correction := self.correction(word))])
            entries = {term: self.entries_with(term) for term in terms(query.text)}
        unknown = [term for term, count in entries.items() if not count]
        weight = min(1.0, (self.entries if size is None else size) / _LARGE)
        long = len(query.text.split()) >= SENTENCE or query.prefixes
        return replace(
            query,
            all_known=not unknown,
            no_known_term=not long and len(unknown) == len(entries) > 0,
            shortness=weight * shortness(len(entries)),
            archive_size=weight,
        )

    def idf(self, word: str) -> float:
        """Return the mean inverse document frequency of a word's terms, as in BM25."""
        stems = terms(word)
        return sum(map(self.idf_of_term, stems)) / max(1, len(stems))

    def idf_of_term(self, term: str) -> float:
        """Return the inverse document frequency of a term, as in BM25."""
        entries, having = self.entries, self.entries_with(term)
        return math.log(1 + (max(entries - having, 0) + 0.5) / (having + 0.5))
