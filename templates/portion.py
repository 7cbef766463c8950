"""Portions: of each item of layer 2 as much as it may cost; what says least is left out first."""

import re
from collections import Counter
from collections.abc import Callable

from msgspec.structs import replace

from ..core.disclosure import Detail
from ..core.observation import PORTION, Observation
from .budget import fitting_details, most_that_fit

_PART = re.compile(r"\s*(?:[^\n]{1,240}?[.!?](?=\s)|[^\n]{1,240}(?=\s|$)|[^\n]{1,240})")
"""A line, a sentence, or as many words as a long one has in the room of two lines."""
_FACTS, _STORY = 3, 500
"""Facts, and characters of a narrative, that are worth more than which files were changed."""
_NAMES = 3
"""Names of a list that are one part of it; the others are another."""


def portion(whole: Detail, cost: Callable[[Detail], int]) -> Detail:
    """The item as it is where it costs no more than `PORTION`; otherwise its parts of most worth, and in `left_out` how
    many there are besides. Where names alone are too much these are clipped, too; an id and a path never are.
    """
    if cost(whole) <= PORTION:
        return whole
    order = _by_worth(whole.observation)

    def first(many: int) -> Detail:
        kept = _with(whole.observation, Counter(order[:many]))
        return replace(whole, observation=kept, left_out=len(order) - many)

    kept = most_that_fit(lambda many: cost(first(many)), max(0, len(order) - 1), PORTION)
    clipped = () if kept else fitting_details((first(0),), lambda some: cost(some[0]) if some else 0, PORTION)
    return clipped[0] if clipped else first(kept)


def _by_worth(whole: Observation) -> list[str]:
    """The field of each part, from the part that is left out last to the one that goes first."""
    ends = _ends(whole.narrative)
    early = sum(end <= _STORY for end in ends)
    return [
        *["subtitle"] * bool(whole.lead),
        *["narrative"] * early,
        *["facts"] * min(_FACTS, len(whole.facts)),
        *["files_modified"] * bool(whole.files_modified),
        *["facts"] * (len(whole.facts) - _FACTS),
        *["evidence"] * len(whole.unsaid),
        *["narrative"] * (len(ends) - early),
        *["concepts"] * bool(whole.concepts),
        *["files_read"] * bool(whole.files_read),
        *["files_modified"] * bool(whole.files_modified[_NAMES:]),
        *["concepts"] * bool(whole.concepts[_NAMES:]),
        *["files_read"] * bool(whole.files_read[_NAMES:]),
    ]


def _with(whole: Observation, many: Counter[str]) -> Observation:
    """The observation with so many parts of each field. No quote is shown because what said the same is left out."""
    ends = _ends(whole.narrative)
    told = whole.narrative[: ends[many["narrative"] - 1]] if many["narrative"] else ""
    some = replace(
        whole,
        subtitle=whole.lead if many["subtitle"] else "",
        narrative=f"{told} …" if 0 < many["narrative"] < len(ends) else told,
        facts=whole.facts[: many["facts"]],
        concepts=_names(whole.concepts, many["concepts"]),
        files_read=_names(whole.files_read, many["files_read"]),
        files_modified=_names(whole.files_modified, many["files_modified"]),
    )
    hidden = {*some.unsaid}.difference(whole.unsaid[: many["evidence"]])
    return replace(some, evidence=tuple(proof for proof in whole.quoted if proof not in hidden))


def _names(every: tuple[str, ...], parts: int) -> tuple[str, ...]:
    """None, the first few, or all."""
    return every if parts > 1 else every[: _NAMES * parts]


def _ends(text: str) -> list[int]:
    """Where each part of a narrative ends."""
    return [part.end() for part in _PART.finditer(text)]
