"""When is something learned again? Two observations say the same when their titles do, when every value in them is
equal (numbers, names, code, colours, files), and when one of them says nothing that the other does not say.
"""

from collections.abc import Iterable
from hashlib import sha256

from ..core.observation import Observation
from .memory.claims import Difference, compare
from .memory.wording import sentences

ALIKE = 0.8
"""How much of the longer one the shorter must say. Without this share a detail would be lost."""
_SHORT = 12
"""Words up to which nothing at all may be missing."""


def mark(observation: Observation, project: str) -> str:
    """What all observations that could be the same have in common: where they are looked up, without comparing pairs.

    Where it holds, whose word it is, its kind, its title, its files and its values.
    """
    title = " ".join(_stems([observation.title]))
    values = " ".join(sorted(_values(_told(observation))))
    files = "\n".join(sorted(observation.files_modified))
    kept = (project, observation.origin, observation.type, title, values, files)
    return sha256("\x00".join(kept).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def same(first: Observation, second: Observation) -> bool:
    """Whether two observations of one mark say the same."""
    if _told(first) == _told(second):
        return True
    one, other = sorted((frozenset(_stems(_told(each))) for each in (first, second)), key=len)
    missing = one != other and (len(other) <= _SHORT or len(one) < ALIKE * len(other))
    if missing or not one <= other or len(first.facts) != len(second.facts):
        return False
    told = (". ".join(_told(each)) for each in (first, second))
    return compare(*told).difference in {Difference.NONE, Difference.OTHER}


def _told(observation: Observation) -> list[str]:
    """What it claims. The narrative is left out: it also tells of the occasion, which is another each time."""
    return [observation.title, *(observation.facts or (observation.narrative,))]


def _stems(texts: Iterable[str]) -> list[str]:
    return [word.stem for text in texts for statement in sentences(text) for word in statement.words]


def _values(texts: Iterable[str]) -> set[str]:
    words = (word for text in texts for statement in sentences(text) for word in statement.words)
    return {word.text.lower() for word in words if word.value or word.number}
