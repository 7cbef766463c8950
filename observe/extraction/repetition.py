"""Detection of repeated observations.

One observation repeats another if both contain the same words in the same order, apart from a few added plain words.
All values must be equal: numbers, names, code, colours, negations, files. Word order matters: `copy staging over
production` does not repeat `copy production over staging`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import chain

from ...core.observation import Observation
from ..memory.contradiction_words import ALTERNATIVES, CHANGE_WORDS, NEGATORS, NUMBERS, OPPOSITES
from ..memory.statement_parser import stem_of

MIN_SHARED = 0.8
"""Minimum share of the words of the longer text that the shorter text must contain.

With a lower share, merging would lose details.
"""
_SHORT = 12
"""Maximum number of words in a short text. A short text repeats another text only if both are equal."""

_WORD = re.compile(r"(?:(?<![\w*])[-+!.~/]+(?=\w))?\w+(?:[.:/\\'’@-]\w+)*|[^\w\s.,;:!?\"'`’“”()*_…-]+")
"""Pattern for words with their joining characters and leading sign, and for symbols that carry meaning.

For example, `a > b` differs from `a < b`, and `-1` from `1`.
"""
_SENTENCE_END = frozenset(".!?:")
_NAMED = re.compile(r"[-+!.~]|.*[\d_/\\@]|.*[^\W\d_][.:][^\W\d_]|.*[a-z][A-Z]|[A-Z]{2,}")
_FILLERS = frozenset("a an the please just really actually simply".split())
_COLOURS = """red green blue yellow orange purple violet pink brown black white grey gray cyan magenta teal indigo amber
    turquoise maroon navy beige gold silver"""
_PLACES = """on off up down in out into onto from to over under before after above below with without at by for until
    since through between left right top bottom front back"""
_MEASURES = """all any each every both only some more most less least few many half twice once must may might can could
    should shall would will if unless except instead but or"""
_DISTINCTIVE = frozenset(
    stem_of(word)
    for word in chain(
        NEGATORS,
        CHANGE_WORDS,
        NUMBERS,
        *(row.split() for row in (*OPPOSITES, *ALTERNATIVES, _COLOURS, _PLACES, _MEASURES)),
    )
)
"""Stems of words that change the meaning of a statement when added."""


def fingerprint(observation: Observation, project: str) -> str:
    """Return a hash that is equal for all observations that may repeat each other.

    It covers the project, origin, type, modified files and values.
    """
    values = " ".join(sorted(set(chain.from_iterable(map(_values, _statements(observation))))))
    files = "\n".join(sorted(observation.files_modified))
    parts = (project, observation.origin, observation.type, values, files)
    return sha256("\x00".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def is_repetition(first: Observation, second: Observation) -> bool:
    """Return whether two observations with equal fingerprints have the same meaning."""
    if _statements(first) == _statements(second):
        return True
    one, other = _statement_stems(first), _statement_stems(second)
    if len(one) != len(other) or bool(one[0]) != bool(other[0]) or not any(one):
        return False
    if (one[0], sorted(one[1:])) == (other[0], sorted(other[1:])):
        return True
    return _extends(zip(one, other, strict=True)) or _extends(zip(other, one, strict=True))


def _extends(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> bool:
    """Return whether the second text of each pair only adds a few unimportant words to the first text."""
    added_words = total_words = 0
    for shorter, longer in pairs:
        added = _added_words(shorter, longer)
        if added is None or not _DISTINCTIVE.isdisjoint(added):
            return False
        added_words += len(added)
        total_words += len(longer)
    return total_words > _SHORT and total_words - added_words >= MIN_SHARED * total_words


def _added_words(shorter: Sequence[str], longer: Sequence[str]) -> list[str] | None:
    """Return the words that the longer text adds to the shorter, or None if it also omits or reorders words."""
    rest: list[str] = []
    place = 0
    for word in longer:
        if place < len(shorter) and word == shorter[place]:
            place += 1
        else:
            rest.append(word)
    return rest if place == len(shorter) else None


def _statements(observation: Observation) -> list[str]:
    """Return title and facts. The narrative is excluded because it also describes the circumstances."""
    return [observation.title, *(observation.facts or (observation.narrative,))]


def _statement_stems(observation: Observation) -> list[list[str]]:
    """Return the stems of each statement. A title that only repeats the start of the first fact has no stems."""
    title, *rest = map(_stems, _statements(observation))
    return [[] if rest[0][: len(title)] == title else title, *rest]


def _stems(text: str) -> list[str]:
    lowered = (word.lower() for word in _WORD.findall(text))
    return [stem_of(word) for word in lowered if word not in _FILLERS]


def _values(text: str) -> Iterator[str]:
    """Yield numbers, names, code and negations. A capitalised word counts as a name unless it starts a sentence."""
    end = 0
    for found in _WORD.finditer(text):
        word, lowered = found.group(), found.group().lower()
        begins = end == 0 or not _SENTENCE_END.isdisjoint(text[end : found.start()])
        named = _NAMED.match(word) is not None or (word[:1].isupper() and not begins)
        if named or lowered in NEGATORS or lowered in NUMBERS or lowered.endswith(("n't", "n’t")):
            yield lowered.replace("’", "'")
        end = found.end()
