"""Portions: of each item of layer 2 as much as it may cost; what says least is left out first."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from ..core.observation import PORTION, Observation
from ..core.results import Detail
from ..core.tokens import count
from .budget import fitting_details, most_near

_PART = re.compile(r"\s*(?:[^\n]{1,240}?[.!?](?=\s)|[^\n]{1,240}(?=\s|$)|[^\n]{1,240})")
"""A line, a sentence, or as many words as a long one has in the room of two lines."""
_FACTS, _STORY = 3, 500
"""Facts, and characters of a narrative, that are worth more than which files were changed."""
_NAMES = 3
"""Names of a list that are one part of it; the others are another."""
_NOTE = 14
"""Tokens of the line that says what is left out."""


class _Piece(NamedTuple):
    """A part of what an observation says: whose field's, and about what goes with it."""

    field: str
    text: str


def portion(whole: Detail, cost: Callable[[Detail], int]) -> Detail:
    """The item as it is where it costs no more than `PORTION`; otherwise its parts of most worth, and in `left_out` how
    many there are besides. Where names alone are too much these are clipped, too; an id and a path never are.
    """
    costs = cost(whole)
    if costs <= PORTION:
        return whole
    order = _by_worth(whole.observation)

    def first(many: int) -> Detail:
        kept = _with(whole.observation, Counter(piece.field for piece in order[:many]))
        return replace(whole, observation=kept, left_out=len(order) - many)

    kept = most_near(_likely(order, costs), lambda many: cost(first(many)), len(order) - 1, PORTION)
    clipped = () if kept else fitting_details((first(0),), lambda some: cost(some[0]) if some else 0, PORTION)
    return clipped[0] if clipped else first(kept)


def _likely(order: Sequence[_Piece], costs: int) -> int:
    """About how many of these parts fit, where all of them cost so much: rendering tells, but takes long."""
    left = costs + _NOTE
    for many in range(len(order), 0, -1):
        if left <= PORTION:
            return many
        left -= count(order[many - 1].text)
    return 0


def _by_worth(whole: Observation) -> list[_Piece]:
    """Every part, from the one that is left out last to the one that goes first."""
    ends = _ends(whole.narrative)
    told = [whole.narrative[start:end] for start, end in pairwise((0, *ends))]
    early = sum(end <= _STORY for end in ends)
    ranked = (
        ("subtitle", [whole.lead] * bool(whole.lead)),
        ("narrative", told[:early]),
        ("facts", whole.facts[:_FACTS]),
        ("files_modified", _listed(whole.files_modified[:_NAMES])),
        ("facts", whole.facts[_FACTS:]),
        ("evidence", [proof.quote for proof in whole.unsaid]),
        ("narrative", told[early:]),
        ("concepts", _listed(whole.concepts[:_NAMES])),
        ("files_read", _listed(whole.files_read[:_NAMES])),
        ("files_modified", _listed(whole.files_modified[_NAMES:])),
        ("concepts", _listed(whole.concepts[_NAMES:])),
        ("files_read", _listed(whole.files_read[_NAMES:])),
    )
    return [_Piece(field, text) for field, texts in ranked for text in texts]


def _listed(names: Sequence[str]) -> list[str]:
    """Names as one part; of many about so many are shown."""
    return [", ".join(names[:_NAMES])] * bool(names)


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
