"""Neighbours: which words of a query stand next to each other, and how much that counts where they do so elsewhere."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TypeAlias

from ..query.tokenizer import spaced, stems

_MOST = 12
"""Pairs that are looked for. More cost more and find no more: they are of common words."""

Pairs: TypeAlias = Mapping[tuple[str, str], float]
"""Two terms, the second of which follows the first, by what they count of all: 1 together."""


def neighbours(text: str, rarity: Callable[[str], float]) -> Pairs:
    """The pairs of neighbouring terms that count most, each as much as both its terms are rare; none where no term
    tells anything.
    """
    told = {pair: sum(map(rarity, pair)) for pair in pairwise(stems(spaced(text)))}
    best = sorted(told, key=lambda pair: -told[pair])[:_MOST]
    total = sum(told[pair] for pair in best)
    return {pair: told[pair] / total for pair in best} if total else {}
