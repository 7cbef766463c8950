"""Spelling: what is meant by a name or a word that nothing has."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from heapq import nlargest

from .query_analysis import WORD

NEAR = 0.75
"""How alike what is meant must be, 0 to 1."""
_COMPARED, _CLOSE = 500, 20
"""How many are compared letter by letter, and how many of these are given."""
_SHORTEST, _TWO = 4, 8
"""Letters of a word that may be misspelled, and from how many on two of them may be wrong."""
_ENDING, _STEMS = 7, 5
"""Letters that the longest endings have, and of how many terms the words are looked at."""
_NEAR_STEM = 0.6
"""How alike a term without its ending is to a word with one, at least."""


def tolerated(word: str) -> int:
    """How many mistakes there may be in a word. More would make a word of any other: `transform` of `terraform`."""
    return 0 if len(word) < _SHORTEST else 1 if len(word) < _TWO else 2


def nearest(word: str, bodies: Iterable[str]) -> str:
    """The word of these texts that is most like one, in small letters; empty where none has so few mistakes."""
    known = {one.lower() for body in bodies for one in WORD.findall(body)}
    # Whoever mistypes a word gets its first letter right; `them` is not what `helm` was meant to be.
    alike = sorted(one for one in known if one[:1] == word[:1].lower())
    close = get_close_matches(word.lower(), alike, _CLOSE, NEAR)
    return next((one for one in close if _mistakes(word.lower(), one) <= tolerated(word)), "")


def _mistakes(one: str, other: str) -> int:
    """How many letters are wrong, missing, too many, or swapped with the next."""
    before, last = list[int](), list(range(len(other) + 1))
    for i, letter in enumerate(one):
        row = [i + 1]
        for j, wanted in enumerate(other):
            row.append(min(last[j + 1] + 1, row[j] + 1, last[j] + (letter != wanted)))
            if i and j and (letter, one[i - 1]) == (other[j - 1], wanted):
                row[j + 1] = min(row[j + 1], before[j - 1] + 1)
        before, last = last, row
    return last[-1]


def spelled_like(name: str, known: Iterable[str]) -> list[str]:
    """Names that are spelled much like one, best first. Comparing takes long, so only the likeliest are compared: of
    about its length, and with the same beginning.
    """
    # Of other lengths not even all letters together would make them alike enough.
    shortest, longest = len(name) * NEAR / (2 - NEAR), len(name) * (2 - NEAR) / NEAR
    alike = [one for one in known if shortest <= len(one) <= longest and one[:1] == name[:1]]
    return get_close_matches(name, _likeliest(name, alike), _CLOSE, NEAR)


def stems_like(term: str, known: Mapping[str, int]) -> list[str]:
    """Terms whose words may be meant by one that nothing has, of those known with how many entries have them; the most
    frequent first. No ending was taken off where it is not spelled as one, so they may be shorter than what is alike.
    """
    alike = [one for one in known if one.isalpha() and len(term) - _ENDING <= len(one) <= len(term) + 1]
    close = get_close_matches(term, _likeliest(term, alike), _CLOSE, _NEAR_STEM)
    return nlargest(_STEMS, close, key=known.__getitem__)


def _likeliest(name: str, known: Iterable[str]) -> list[str]:
    return nlargest(_COMPARED, known, key=lambda one: _begun_alike(one, name))


def _begun_alike(one: str, other: str) -> int:
    """How many letters two names have in common until the first that differs."""
    return next(
        (place for place, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]),
        min(len(one), len(other)),
    )
