"""Weights of query tokens and adjacent-term pairs by inverse document frequency (IDF), for re-ranking."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ...core.text import readable
from ..index.text_index import Pairs
from ..model.embedding import TextEmbeddings, TokenVectors
from ..query.query_analysis import WORD
from ..query.tokenizer import spaced, stems

_TOKENS = 48
"""Maximum number of query tokens to compare. One question in 50 has more tokens."""
_PAIRS = 12
"""Maximum number of adjacent-term pairs to compare. Pairs with a lower IDF do not improve results."""


def weighted_tokens(text: str, embeddings: TextEmbeddings, idf: Callable[[str], float]) -> TokenVectors:
    """Return the token embeddings of a query, scaled by the square root of the IDF of their words.

    Tokens of weight 0 are left out. If all weights are 0, all tokens have the same weight. At most `_TOKENS`
    tokens with the highest weights are kept. On a tie, earlier tokens are kept.
    """
    [tokens], [spans] = embeddings.tokens, embeddings.spans
    if not len(tokens):
        return tokens
    read = readable(text)[: spans[-1][1]]
    known: dict[str, float] = {}
    by_character = np.zeros(len(read))
    for word in WORD.finditer(read):
        if word[0] not in known:
            known[word[0]] = idf(word[0])
        by_character[word.start() : word.end()] = known[word[0]]
    weights = np.array([by_character[start:end].max(initial=0.0) for start, end in spans])
    weights = np.sqrt(weights) if weights.any() else np.ones(len(tokens))
    units = tokens / np.linalg.norm(tokens, axis=1, keepdims=True)
    kept = np.sort(np.argsort(-weights, kind="stable")[:_TOKENS])
    kept = kept[weights[kept] > 0]
    weighted: TokenVectors = (units[kept] * weights[kept, None]).astype(np.float32)
    return weighted


def adjacent_pairs(text: str, idf: Callable[[str], float]) -> Pairs:
    """Return the pairs of adjacent terms with the highest IDF, with weights proportional to the IDF.

    The weights add up to 1. The result is empty if no pair has a positive IDF.
    """
    weights = {pair: sum(map(idf, pair)) for pair in pairwise(stems(spaced(text)))}
    best = sorted(weights, key=lambda pair: -weights[pair])[:_PAIRS]
    total = sum(weights[pair] for pair in best)
    return {pair: weights[pair] / total for pair in best} if total else {}


def common_pairs(wordings: Sequence[Pairs]) -> Pairs:
    """Return the pairs with the highest mean weights over several wordings, each with its mean weight."""
    if len(wordings) == 1:
        return wordings[0]
    weights = Counter[tuple[str, str]]()
    for pairs in wordings:
        weights.update({pair: weight / len(wordings) for pair, weight in pairs.items()})
    return dict(weights.most_common(_PAIRS))
