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
    """Return 1 if a relevant item is among the first `depth`, else 0."""
    return lambda ranking, gains: float(any(item in gains for item in ranking[:depth]))


def recall_at(depth: int) -> Callable[[Ranking, Gains], float]:
    """Return the share of relevant items among the first `depth`."""
    return lambda ranking, gains: sum(item in gains for item in ranking[:depth]) / len(gains)


def reciprocal_rank(depth: int) -> Callable[[Ranking, Gains], float]:
    """Return one divided by the rank of the first relevant item within `depth`, else 0."""

    def metric(ranking: Ranking, gains: Gains) -> float:
        return next((1 / rank for rank, item in enumerate(ranking[:depth], 1) if item in gains), 0.0)

    return metric


def ndcg_at(depth: int) -> Callable[[Ranking, Gains], float]:
    """Return the discounted gain of the first `depth`, divided by that of the ideal order."""

    def metric(ranking: Ranking, gains: Gains) -> float:
        got = [gains.get(item, 0.0) for item in ranking[:depth]]
        best = sorted(gains.values(), reverse=True)[:depth]
        return _discounted(got) / _discounted(best)

    return metric


def _discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))


def separation(answerable: Sequence[float], negatives: Sequence[float]) -> float:
    """Return the probability that an answerable query scores above a negative (AUC); ties count half."""
    above, equal = np.greater.outer(answerable, negatives), np.equal.outer(answerable, negatives)
    return float((above + 0.5 * equal).mean())


def silenced(answerable: Sequence[tuple[float, float]], negatives: Sequence[float], price: float) -> float:
    """Return the largest share of negatives that a score threshold rejects at an average cost of `price`.

    `answerable` contains pairs of top score and value of the answer; scores below the threshold lose their value.
    """
    budget = price * len(answerable) + 1e-9
    floor, spent = -math.inf, 0.0
    for score, value in sorted(answerable):
        floor = score  # loses only what scores below it; what sits on it is lost by the next step
        spent += value
        if spent > budget:
            break
    else:
        floor = math.inf
    return sum(score < floor for score in negatives) / len(negatives)


def interval(differences: Sequence[float], *, resamples: int = 10_000) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the mean of paired differences, with a fixed seed."""
    values: npt.NDArray[np.float64] = np.asarray(differences, dtype=np.float64)
    drawn = np.random.default_rng(0).integers(0, len(values), (resamples, len(values)))
    low, high = np.percentile(values[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)
