"""Metrics of rankings, and confidence intervals of their differences.

A ranking is a list of item IDs, best first. Gains map relevant IDs to their relevance.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Ranking = Sequence[str]
Gains = Mapping[str, float]


def hit_at(depth: int) -> Callable[[Ranking, Gains], float]:
    """Return a metric: 1 if a relevant item is among the first `depth` items, otherwise 0."""
    return lambda ranking, gains: float(any(item in gains for item in ranking[:depth]))


def recall_at(depth: int) -> Callable[[Ranking, Gains], float]:
    """Return a metric: the share of the relevant items that are among the first `depth` items."""
    return lambda ranking, gains: sum(item in gains for item in ranking[:depth]) / len(gains)


def reciprocal_rank(depth: int) -> Callable[[Ranking, Gains], float]:
    """Return a metric: the reciprocal rank of the first relevant item, or 0 if it is not within `depth`."""

    def metric(ranking: Ranking, gains: Gains) -> float:
        return next((1 / rank for rank, item in enumerate(ranking[:depth], 1) if item in gains), 0.0)

    return metric


def ndcg_at(depth: int) -> Callable[[Ranking, Gains], float]:
    """Return a metric: the discounted gain of the first `depth` items, divided by the gain of the ideal ranking."""

    def metric(ranking: Ranking, gains: Gains) -> float:
        got = [gains.get(item, 0.0) for item in ranking[:depth]]
        best = sorted(gains.values(), reverse=True)[:depth]
        return _discounted(got) / _discounted(best)

    return metric


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def separation(answerable: Sequence[float], negatives: Sequence[float]) -> float:
    """Return the probability that an answerable question scores higher than a negative (AUC). Ties count half."""
    above, equal = np.greater.outer(answerable, negatives), np.equal.outer(answerable, negatives)
    return float((above + 0.5 * equal).mean())


def rejectable(answerable: Sequence[tuple[float, float]], negatives: Sequence[float], cost: float) -> float:
    """Return the largest share of negatives that a score threshold rejects at an average cost of `cost`.

    `answerable` contains the best score of each question and the value of its answer. An answer with a score below the
    threshold is lost, and its value counts as cost.
    """
    budget = cost * len(answerable) + 1e-9
    threshold, spent = -math.inf, 0.0
    for score, value in sorted(answerable):
        threshold = score  # rejects lower scores, but not this one
        spent += value
        if spent > budget:
            break
    else:
        threshold = math.inf
    return sum(score < threshold for score in negatives) / len(negatives)


def interval(differences: Sequence[float], *, resamples: int = 10_000) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean of paired differences, with a fixed seed."""
    values: npt.NDArray[np.float64] = np.asarray(differences, dtype=np.float64)
    drawn = np.random.default_rng(0).integers(0, len(values), (resamples, len(values)))
    low, high = np.percentile(values[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)
