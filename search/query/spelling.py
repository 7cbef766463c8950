"""Similar spellings of unknown names and words."""

import re
from collections.abc import Iterable, Mapping
from heapq import nlargest

from rapidfuzz.distance import OSA

from ...core.text import similar_names

_STEM_SIMILARITY = 60
"""Minimum similarity of a stem to an unknown term, 0 to 100. It is low, because the term may have an extra ending."""
_SHORTEST, _TWO = 4, 8
"""Minimum length of a word that is corrected with one edit, and of a word that is corrected with two edits."""
_ENDING, _STEMS, _CLOSE = 7, 5, 20
"""Maximum length of a word ending, number of stems to return, and number of similar names to consider."""


def max_edits(word: str) -> int:
    """Return the maximum edit distance for a word. A higher limit would turn `terraform` into `transform`."""
    return 0 if len(word) < _SHORTEST else 1 if len(word) < _TWO else 2


def nearest(word: str, texts: Iterable[str]) -> str:
    """Return the most similar word in these texts, in lower case, or an empty string if no word is similar enough.

    Only words with the same first letter are compared, because typos rarely change the first letter.
    """
    small, edits = word.lower(), max_edits(word)
    shortest, longest = max(0, len(small) - 1 - edits), len(small) - 1 + edits
    first = re.escape(small[0])
    # A pattern that begins with a letter and respects case is searched five times as fast.
    similar = re.compile(rf"{first}(?<![^\W_]{first})[^\W_]{{{shortest},{longest}}}(?![^\W_])")
    words = {candidate for text in texts for candidate in similar.findall(text.lower())}
    alike = [
        (distance, candidate)
        for candidate in words
        if (distance := OSA.distance(small, candidate, score_cutoff=edits)) <= edits
    ]
    return min(alike, default=(0, ""))[1]


def similar_spellings(name: str, names: Iterable[str]) -> list[str]:
    """Return the known names with a similar spelling and the same first letter, most similar first."""
    alike = [candidate for candidate in names if candidate[:1] == name[:1]]
    return similar_names(name, alike, limit=_CLOSE)


def similar_stems(term: str, counts: Mapping[str, int]) -> list[str]:
    """Return known stems that an unknown term may be a misspelling of, most frequent first.

    The stemmer does not remove a misspelled ending, so the correct stem can be shorter than the term.

    Args:
        term: The unknown term.
        counts: Known terms with their entry counts.
    """
    alike = [stem for stem in counts if stem.isalpha() and len(term) - _ENDING <= len(stem) <= len(term) + 1]
    close = similar_names(term, alike, least=_STEM_SIMILARITY, limit=_CLOSE)
    return nlargest(_STEMS, (stem for stem in close if _begins(term, stem)), key=counts.__getitem__)


def _begins(term: str, stem: str) -> bool:
    """Return whether a term begins with a stem or a misspelled stem of at least half its length."""
    if 2 * len(stem) < len(term):
        return False
    begun = stem.removesuffix("i")  # the stem of a word that ends with "y"
    edits, lengths = max_edits(term), range(len(begun) - 1, len(begun) + 2)
    return any(OSA.distance(begun, term[:length], score_cutoff=edits) <= edits for length in lengths)
