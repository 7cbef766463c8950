"""Tests of the loop that checks many cases."""

import pytest

from .cases import for_each


def test_every_failing_case_is_named() -> None:
    """Every case runs, and the report names each one that fails, by an assertion or by another exception."""
    checked = list[int]()

    @for_each("number", [0, 1, 2, 3], label="case {}".format)
    def check(number: int) -> None:
        checked.append(number)
        assert 6 / number < 4
        if number == 3:
            pytest.fail("too large")

    with pytest.raises(BaseExceptionGroup, match="3 of 4 cases fail: case 0, case 1, case 3") as failed:
        check()

    assert checked == [0, 1, 2, 3]
    assert [type(error) for error in failed.value.exceptions] == [
        ZeroDivisionError,
        AssertionError,
        pytest.fail.Exception,
    ]
    assert [error.__notes__ for error in failed.value.exceptions] == [
        ["Case: case 0"],
        ["Case: case 1"],
        ["Case: case 3"],
    ]


@for_each("text, length", [("", 0), ("kettle", 6)])
def test_cases_share_the_fixtures(text: str, length: int, request: pytest.FixtureRequest) -> None:
    """A case sets the named parameters, and pytest the fixtures."""
    assert len(text) == length
    assert request.function.__name__ == "test_cases_share_the_fixtures"


def test_a_loop_without_cases_is_an_error() -> None:
    """An empty list of cases raises an error, because nothing would be checked."""
    with pytest.raises(ValueError, match="No case for name"):
        for_each("name", [])
