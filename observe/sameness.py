"""When is something learned again? When one observation says word for word what the other says, with some plain words
more or fewer, and every value in both is equal: numbers, names, code, colours, negations, files.

Nothing may be exchanged or change its place: `copy staging over production` is not `copy production over staging`. So
whatever differs between two texts must be missing from one of them, be little of it, and tell nothing by itself.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import chain

from ..core.observation import Observation
from .memory.lexicon import CHANGES, NEGATORS, NUMBERS, OPPOSITES, RIVALS
from .memory.wording import stem_of

ALIKE = 0.8
"""How much of the longer one the shorter must say. Without this share a detail would be lost."""
_SHORT = 12
"""Words up to which nothing at all may be missing."""

_WORD = re.compile(r"(?:(?<![\w*])[-+!.~/]+(?=\w))?\w+(?:[.:/\\'’@-]\w+)*|[^\w\s.,;:!?\"'`’“”()*_…-]+")
"""Words with what joins them and the sign before them, and the signs that mean something: `a > b` is not `a < b`, and
`-1` not `1`.
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
_TELLING = frozenset(
    stem_of(word)
    for word in chain(
        NEGATORS, CHANGES, NUMBERS, *(row.split() for row in (*OPPOSITES, *RIVALS, _COLOURS, _PLACES, _MEASURES))
    )
)
"""Stems of words that make another statement of one, wherever they are put in."""


def mark(observation: Observation, project: str) -> str:
    """What all observations that could be the same have in common: where they are looked up, without comparing pairs.

    Where it holds, whose word it is, its kind, its files and its values.
    """
    values = " ".join(sorted(set(chain.from_iterable(map(_values, _told(observation))))))
    files = "\n".join(sorted(observation.files_modified))
    kept = (project, observation.origin, observation.type, values, files)
    return sha256("\x00".join(kept).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def same(first: Observation, second: Observation) -> bool:
    """Whether two observations of one mark say the same."""
    if _told(first) == _told(second):
        return True
    one, other = _claims(first), _claims(second)
    if len(one) != len(other) or bool(one[0]) != bool(other[0]) or not any(one):
        return False
    if (one[0], sorted(one[1:])) == (other[0], sorted(other[1:])):
        return True
    return _extends(zip(one, other, strict=True)) or _extends(zip(other, one, strict=True))


def _extends(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> bool:
    """Whether each second text is the first with some words put in that tell nothing, and not many in all."""
    put_in = said = 0
    for shorter, longer in pairs:
        added = _added(shorter, longer)
        if added is None or not _TELLING.isdisjoint(added):
            return False
        put_in += len(added)
        said += len(longer)
    return said > _SHORT and said - put_in >= ALIKE * said


def _added(shorter: Sequence[str], longer: Sequence[str]) -> list[str] | None:
    """The words of the longer text that the shorter has not; None where it is not the shorter with words put in."""
    rest: list[str] = []
    place = 0
    for word in longer:
        if place < len(shorter) and word == shorter[place]:
            place += 1
        else:
            rest.append(word)
    return rest if place == len(shorter) else None


def _told(observation: Observation) -> list[str]:
    """What it claims. The narrative is left out: it also tells of the occasion, which is another each time."""
    return [observation.title, *(observation.facts or (observation.narrative,))]


def _claims(observation: Observation) -> list[list[str]]:
    """The stems of the title and of all else it claims. A title that is the beginning of that claims nothing itself."""
    title, *rest = map(_stems, _told(observation))
    return [[] if rest[0][: len(title)] == title else title, *rest]


def _stems(text: str) -> list[str]:
    lowered = (word.lower() for word in _WORD.findall(text))
    return [stem_of(word) for word in lowered if word not in _FILLERS]


def _values(text: str) -> Iterator[str]:
    """Numbers, names, code and negations. A capital is a name's where no sentence begins."""
    end = 0
    for found in _WORD.finditer(text):
        word, lowered = found.group(), found.group().lower()
        begins = end == 0 or not _SENTENCE_END.isdisjoint(text[end : found.start()])
        named = _NAMED.match(word) is not None or (word[:1].isupper() and not begins)
        if named or lowered in NEGATORS or lowered in NUMBERS or lowered.endswith(("n't", "n’t")):
            yield lowered.replace("’", "'")
        end = found.end()
