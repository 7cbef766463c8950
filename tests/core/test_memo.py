"""A memo makes each value once, and never holds more than it may."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.memo import Memo


def test_a_value_is_made_once() -> None:
    """What was asked for before is given again; looking whether it is there makes nothing."""
    made = list[str]()

    def make(name: str) -> str:
        made.append(name)
        return name.upper()

    memo = Memo[str, str](most=2)

    assert memo.get("a") is None
    assert [memo.made("a", make), memo.made("a", make), memo.get("a")] == ["A", "A", "A"]
    assert made == ["a"]


@given(st.lists(st.integers(0, 9)), st.integers(1, 5))
def test_it_is_right_and_bounded_whatever_is_asked(asked: list[int], most: int) -> None:
    """Each answer is what would be made anew, and never are more kept than it may hold."""
    memo = Memo[int, int](most)
    for number in asked:
        assert memo.made(number, lambda number: number * number) == number * number
        assert 0 < len(memo) <= most


def test_what_fails_is_kept_nowhere() -> None:
    """A value that could not be made is tried again, and takes the others nothing."""
    memo = Memo[int, float](most=1)
    assert memo.made(4, lambda number: 1 / number) == 0.25

    with pytest.raises(ZeroDivisionError):
        memo.made(0, lambda number: 1 / number)
    assert memo == {4: 0.25}
