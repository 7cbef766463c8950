"""Tests of core/tokens.py: a cache computes each value once and has a maximum size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.tokens import Memo


def test_value_is_computed_once() -> None:
    """A second request returns the cached value, and `get` computes no value."""
    made = list[str]()

    def make(name: str) -> str:
        made.append(name)
        return name.upper()

    memo = Memo[str, str](most=2)

    assert memo.get("a") is None
    assert [memo.get_or_make("a", make), memo.get_or_make("a", make), memo.get("a")] == ["A", "A", "A"]
    assert made == ["a"]


@given(st.lists(st.integers(0, 9)), st.integers(1, 5))
def test_cache_is_correct_and_bounded(requests: list[int], most: int) -> None:
    """For any requests, each returned value is correct, and the cache never exceeds its maximum size."""
    memo = Memo[int, int](most)
    for number in requests:
        assert memo.get_or_make(number, lambda number: number * number) == number * number
        assert 0 < len(memo) <= most


def test_failed_computation_is_not_cached() -> None:
    """A failed computation raises its error and does not change the cached values."""
    memo = Memo[int, float](most=1)
    assert memo.get_or_make(4, lambda number: 1 / number) == 0.25

    with pytest.raises(ZeroDivisionError):
        memo.get_or_make(0, lambda number: 1 / number)
    assert memo == {4: 0.25}
