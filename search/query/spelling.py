"""Similar spellings of unknown names and words."""

from collections.abc import Iterable, Mapping
from heapq import nlargest

from rapidfuzz.distance import OSA

from ...core.text import similar_names
from .query_analysis import WORD

_STEM_SIMILARITY = 60
"""Least similarity of a stem, which has lost its ending, to a word with one."""
_SHORTEST, _TWO = 4, 8
"""Letters of a word that may be misspelled, and those from which on it may have two mistakes."""
_ENDING, _STEMS, _CLOSE = 7, 5, 20
"""Letters of the longest endings, stems that are returned, and candidates that are considered."""


def max_edits(word: str) -> int:
    """Return the edits allowed in a word. More would turn `terraform` into `transform`."""
    return 0 if len(word) < _SHORTEST else 1 if len(word) < _TWO else 2


def nearest(word: str, texts: Iterable[str]) -> str:
    """Return the most similar word of these texts, in lower case; empty if none is similar enough.

    Only words with the same first letter count, since typos rarely change it.
    """
    small = word.lower()
    known = {one.lower() for text in texts for one in WORD.findall(text)}
    edits = max_edits(word)
    alike = [
        (distance, one)
        for one in known
        if one[:1] == small[:1] and (distance := OSA.distance(small, one, score_cutoff=edits)) <= edits
    ]
    return min(alike, default=(0, ""))[1]


def similar_spellings(name: str, known: Iterable[str]) -> list[str]:
    """Return names with a similar spelling and the same first letter, best first."""
    alike = [one for one in known if one[:1] == name[:1]]
    return similar_names(name, alike, limit=_CLOSE)


def similar_stems(term: str, known: Mapping[str, int]) -> list[str]:
    """Return terms whose words an unknown term may stand for, the most frequent first.

    The stemmer removes no ending that is misspelled, so a stem may be shorter than the term.

    Args:
        term: The unknown term.
        known: Known terms with their numbers of entries.
    """
    alike = [one for one in known if one.isalpha() and len(term) - _ENDING <= len(one) <= len(term) + 1]
    close = similar_names(term, alike, least=_STEM_SIMILARITY, limit=_CLOSE)
    return nlargest(_STEMS, close, key=known.__getitem__)
