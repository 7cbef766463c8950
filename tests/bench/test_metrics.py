"""Metrics in bench/RESULTS.md follow their definitions."""

import math

import pytest

from bench.retrieval.corpus import Question
from bench.retrieval.metrics import hit_at, interval, ndcg_at, recall_at, reciprocal_rank, rejectable, separation

RANKING = ["a", "b", "c", "d"]


def test_hit() -> None:
    """A query is a hit if any relevant item is within the depth."""
    assert [hit_at(depth)(RANKING, {"c": 1.0, "x": 1.0}) for depth in (2, 3)] == [0.0, 1.0]


def test_recall() -> None:
    """Recall is the fraction of relevant items that were found."""
    assert recall_at(3)(RANKING, {"a": 1.0, "c": 1.0, "d": 1.0, "x": 1.0}) == 0.5


def test_reciprocal_rank() -> None:
    """Only the first relevant item within the depth counts."""
    assert reciprocal_rank(10)(RANKING, {"c": 1.0, "d": 1.0}) == pytest.approx(1 / 3)
    assert reciprocal_rank(2)(RANKING, {"c": 1.0}) == 0.0


def test_ndcg() -> None:
    """Gains are graded and discounted by the logarithm of the rank. The ideal order scores 1."""
    gains = {"a": 1.0, "b": 3.0, "x": 2.0}
    got = 1 / math.log2(2) + 3 / math.log2(3)
    best = 3 / math.log2(2) + 2 / math.log2(3) + 1 / math.log2(4)

    assert ndcg_at(10)(RANKING, gains) == pytest.approx(got / best)
    assert ndcg_at(2)(["b", "x"], gains) == pytest.approx(1.0)


def test_separation() -> None:
    """A tie counts as split. A query without results ranks below every score."""
    assert separation([3.0, 1.0], [1.0, -math.inf]) == pytest.approx((1 + 1 + 0.5 + 1) / 4)


def test_rejectable() -> None:
    """The threshold is the highest one that rejects at most the allowed number of correct results."""
    answerable = [(0.9, 1.0), (0.5, 1.0), (0.3, 0.0), (0.2, 1.0)]
    negatives = [0.1, 0.2, 0.4, 0.6]

    assert rejectable(answerable, negatives, 0.0) == 0.25
    assert rejectable(answerable, negatives, 0.25) == 0.75
    assert rejectable(answerable, negatives, 1.0) == 1.0


def test_interval() -> None:
    """Equal differences have a confidence interval of width zero, and noise around zero has an interval around zero."""
    assert interval([0.25] * 40) == (0.25, 0.25)

    low, high = interval([1.0, -1.0] * 50)
    assert low < 0 < high
    assert high == pytest.approx(1.96 / math.sqrt(100), abs=0.03)


def test_splits() -> None:
    """A question always belongs to the same data split."""
    splits = [Question(f"q{number}", "", (), {}).split for number in range(8)]

    assert splits == ["train", "test", "train", "train", "test", "train", "test", "test"]
