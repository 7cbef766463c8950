"""Emphasis: how much each token of a query counts where texts are compared with it token by token."""

from collections.abc import Callable

import numpy as np

from ...core.text import readable
from ..index.token_bits import Tokens
from ..model.embedder import TextEmbeddings
from ..query.query_analysis import WORD

_MOST = 48
"""Tokens of a query that are compared: one in fifty questions has more, and a pasted text."""


def emphasised(text: str, reading: TextEmbeddings, rarity: Callable[[str], float]) -> Tokens:
    """The tokens of a query, each as long as it counts: the root of how rare the word is that it stands in. Tokens that
    tell nothing are left out; where none tells anything, all count the same. Of more than `_MOST` only those are kept
    that count most, the first of equals.
    """
    [tokens], [spans] = reading.tokens, reading.spans
    if not len(tokens):
        return tokens
    read = readable(text)[: spans[-1][1]]
    known: dict[str, float] = {}
    rarities = np.zeros(len(read))  # by character
    for word in WORD.finditer(read):
        if word[0] not in known:
            known[word[0]] = rarity(word[0])
        rarities[word.start() : word.end()] = known[word[0]]
    weights = np.array([rarities[start:end].max(initial=0.0) for start, end in spans])
    weights = np.sqrt(weights) if weights.any() else np.ones(len(tokens))
    units = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
    kept = np.sort(np.argsort(-weights, kind="stable")[:_MOST])
    kept = kept[weights[kept] > 0]
    emphasis: Tokens = (units[kept] * weights[kept, None]).astype(np.float32)
    return emphasis
