"""Words of the archive for a query that shares few words with its hits, so that the caller can reword the query."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from ...core.query import Query
from ...core.results import Hit
from ..index.snapshot import Snapshot
from ..query.query_analysis import WORD
from ..query.tokenizer import terms

TITLES: Final = 20
"""Number of best events whose titles are read: those on a page of ten hits, and as many further events."""
_WORDS_MAX: Final = 8
_LENGTH_MIN: Final = 4
"""Minimum length of a word. Shorter words are mostly function words."""
_ENTRIES_MIN: Final = 2
_IDF_MIN: Final = 2.5
"""Minimum IDF of a word, which about 8 % of the entries contain. A more frequent word does not narrow a search down."""
_MATCH_MIN: Final = 0.2
"""Minimum text score of a hit that contains enough words of a query.

Of the questions of the development set, 51 of 73 relevant paraphrases and 6 of 11 unanswerable questions are below it,
but only 14 of 443 other questions.
"""
_COMPARED: Final = 5
"""Number of first hits of which one must contain enough words of the query."""


def is_uncertain(hits: Iterable[Hit]) -> bool:
    """Return whether the first hits contain so few words of a query that only their meaning may match it."""
    scores = [part.value for hit in islice(hits, _COMPARED) for part in hit.parts if part.name == "words"]
    return bool(scores) and max(scores) < _MATCH_MIN


def words_used(titles: Iterable[str], query: Query, hits: Iterable[Hit], snapshot: Snapshot) -> tuple[str, ...]:
    """Return words of the titles of further events that neither the query nor the titles of its hits contain.

    The words occur in few entries, but in more than one. For 4 of 15 paraphrases of the development set whose session
    is not on the page, one of them is a word of a title of this session.
    """
    known = {term for text in (*query.concepts, *query.also, *(hit.title for hit in hits)) for term in terms(text)}
    distinct: dict[str, str] = {}
    for word in _words(titles):
        stems = terms(word)
        if known.isdisjoint(stems) and all(
            snapshot.entries_with(stem) >= _ENTRIES_MIN and snapshot.idf_of_term(stem) >= _IDF_MIN for stem in stems
        ):
            distinct.setdefault(" ".join(stems), word.lower() if word[1:].islower() else word)
    return tuple(islice(distinct.values(), _WORDS_MAX))


def _words(titles: Iterable[str]) -> Iterator[str]:
    return (word for title in titles for word in WORD.findall(title) if len(word) >= _LENGTH_MIN and word.isalpha())
