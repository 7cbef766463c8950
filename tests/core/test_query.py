"""Tests of core/query.py."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core.conversation import day_end, day_start
from palaver.core.errors import (
    ConceptCount,
    FilterNotAllowed,
    InvalidDate,
    InvalidInput,
    InvalidLimit,
    QueryNotText,
    QueryTooLong,
    QueryTooShort,
    UnknownType,
)
from palaver.core.observation import ObservationType
from palaver.core.query import Filters, Mode, Query
from palaver.core.text import is_path_pattern, path_fits

from ..cases import for_each


def test_query_has_defaults() -> None:
    """The defaults are both engines, ten results, three of each session, and no filter."""
    assert Query.parse(" why cents ") == Query(("why cents",), Mode.BOTH, 10, Filters(), per_session=3)


def test_two_to_five_concepts_are_allowed() -> None:
    """Two to five concepts keep their order. Other numbers are refused."""
    assert Query.parse(["ab", " cd "]).concepts == ("ab", "cd")
    assert Query.parse(("ab",) * 5).concepts == ("ab",) * 5
    for count in (0, 1, 6):
        with pytest.raises(ConceptCount, match="Query array must have 2-5 items") as refused:
            Query.parse(["ab"] * count)
        assert refused.value.hint == "Add or remove concepts."


def test_query_has_at_most_ten_thousand_characters() -> None:
    """Queries, concepts and other wordings have at most 10,000 characters."""
    longest = "kiln " * 2_000
    assert Query.parse(longest).concepts == (longest.strip(),)
    for query, also in ((longest + "rooms", ()), (["ab", "x" * 10_001], ()), ("ab", ("x" * 10_001,))):
        with pytest.raises(QueryTooLong, match="at most 10,000 allowed"):
            Query.parse(query, also=also)


@pytest.mark.parametrize("query", ["", "a", "  a  ", "\n", ["ab", "c"], ["ab", ""]])
def test_query_has_at_least_two_characters(query: object) -> None:
    """Queries and concepts need at least two characters besides spaces."""
    with pytest.raises(QueryTooShort, match="Query too short") as refused:
        Query.parse(query)
    assert refused.value.hint == "Use at least 2 characters."


@pytest.mark.parametrize("query", [None, 12, 1.5, True, {"a": 1}, {"ab", "cd"}, b"ab", ["ab", 3], ["ab", None]])
def test_query_is_text(query: object) -> None:
    """Values other than text are refused."""
    with pytest.raises(QueryNotText, match="Query must be string or array"):
        Query.parse(query)


@pytest.mark.parametrize("limit", [0, -1, 51, True, "10", 10.0, None, 10**30])
def test_limit_is_a_number_from_1_to_50(limit: object) -> None:
    """Other limits raise an error that contains the given value."""
    with pytest.raises(InvalidLimit) as refused:
        Query.parse("ab", limit=limit)
    assert str(refused.value) == f"Invalid limit: {limit}"


def test_an_invalid_limit_is_reported_before_a_short_query() -> None:
    """A query that is also too short does not hide an invalid limit."""
    with pytest.raises(InvalidLimit):
        Query.parse("x", limit=0)


def test_smallest_and_largest_limits_are_allowed() -> None:
    """The limits 1 and 50 are allowed."""
    assert [Query.parse("ab", limit=limit).limit for limit in (1, 50)] == [1, 50]


def test_days_bound_whole_days() -> None:
    """A lower and an upper bound include their whole days."""
    filters = Query.parse("ab", after="2026-03-01", before="2026-03-01").filters

    assert (filters.after, filters.before) == (day_start("2026-03-01"), day_end("2026-03-01"))


def test_time_expressions_are_ranges() -> None:
    """A month is a range from its first to its last day."""
    filters = Query.parse("ab", after="march 2026", before="2026-03").filters

    assert (filters.after, filters.before) == (day_start("2026-03-01"), day_end("2026-03-31"))


@pytest.mark.parametrize("name", ["after", "before"])
@pytest.mark.parametrize("text", ["", "2026-02-30", "tomorrow"])
def test_impossible_day_is_refused(name: str, text: str) -> None:
    """Impossible days and empty text are refused."""
    with pytest.raises(InvalidDate, match="Invalid date format") as refused:
        Query.parse("ab", after=text if name == "after" else None, before=text if name == "before" else None)
    assert refused.value.hint.startswith("Use YYYY-MM-DD format, or words: yesterday, ")


def test_aliases_of_types_are_one_filter() -> None:
    """Two names of one type select the same type. An unknown type is refused."""
    assert Query.parse("ab", types=["bugfix", "bug-fix", "test"]).filters.types == (
        ObservationType.BUG_FIX,
        ObservationType.TEST,
    )
    with pytest.raises(UnknownType, match="nonsense") as refused:
        Query.parse("ab", types=["nonsense"])
    assert all(kind in refused.value.hint for kind in ObservationType)


def test_some_filters_need_a_single_concept() -> None:
    """For several concepts, the error contains exactly the filters that are not allowed."""
    with pytest.raises(FilterNotAllowed) as refused:
        Query.parse(["ab", "cd"], types=["test"], files=["f"])
    assert str(refused.value).startswith("types, files: ")

    several = Query.parse(["ab", "cd"], projects=["p"], after="2026-01-01")
    assert several.filters.projects == ("p",)
    assert Query.parse("ab", types=["test"], concepts=["c"], files=["f"]).filters


def test_unknown_mode_is_refused() -> None:
    """The error contains all modes."""
    assert [Query.parse("ab", mode=mode).mode for mode in ("vector", "text", "both")] == list(Mode)
    with pytest.raises(InvalidInput, match="Unknown mode: magic") as refused:
        Query.parse("ab", mode="magic")
    assert refused.value.hint == "Use one of: vector, text, both."


def test_filters_are_true_if_any_is_set() -> None:
    """Filters are true if any filter is set, even for the first instant of 1970."""
    assert not Filters()
    assert Filters(after=0)
    assert Filters(files=("f",))


anything = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()


@given(anything | st.lists(anything), anything)
def test_any_input_is_parsed_or_refused(query: object, limit: object) -> None:
    """Any input gives a query or raises `InvalidInput`."""
    answer: InvalidInput | None = None
    try:
        made = Query.parse(query, limit=limit)
    except InvalidInput as refused:
        answer = refused
    else:
        assert 1 <= len(made.concepts) <= 5
        assert all(concept == concept.strip() and len(concept) >= 2 for concept in made.concepts)
        assert 1 <= made.limit <= 50
    assert answer is None or (str(answer) and answer.hint)


@given(st.permutations(["brass kettle", "copper pot", "tin pan"]), st.sampled_from(["", " ", "  "]))
def test_the_order_of_other_wordings_does_not_matter(also: list[str], space: str) -> None:
    """Requests with the same other wordings in another order, or with other spaces, are equal."""
    given = [each.replace(" ", f" {space}") for each in also]

    assert Query.parse("teapot", also=given) == Query.parse("teapot", also=["brass kettle", "copper pot", "tin pan"])


def test_repeated_wordings_change_nothing() -> None:
    """A wording that repeats the query or another wording is left out."""
    assert Query.parse("brass kettle", also=["Brass  kettle"]) == Query.parse("brass kettle")
    assert Query.parse("teapot", also=["tin pan", "Tin pan"]).also == ("tin pan",)


@pytest.mark.parametrize(
    ("query", "also", "message"),
    [
        ("kettle", ["teapot"] * 5, "5 other wordings given, at most 4 allowed"),
        ("kettle", ["teapot", " "], "empty"),
        ("kettle", [""], "empty"),
        ("kettle", "teapot", "array of strings"),
        ("kettle", [1], "array of strings"),
        (["kettle", "teapot"], ["pot"], "one concept"),
    ],
)
def test_invalid_wordings_are_refused(query: object, also: object, message: str) -> None:
    """Too many wordings, empty wordings, and wordings of several concepts are refused with a hint."""
    with pytest.raises(InvalidInput, match=message) as refused:
        Query.parse(query, also=also)

    assert refused.value.hint


# Tests of path patterns in filters.


@for_each(
    "pattern, path, covered",
    [
        ("*.ts", "/w/app/src/auth.ts", True),
        ("*.ts", "/w/app/src/auth.tsx", False),
        ("src/*.ts", "/w/app/src/auth.ts", True),
        ("src/*.ts", "/w/app/src/api/auth.ts", False),
        ("src/**/auth.ts", "/w/app/src/api/v1/auth.ts", True),
        ("src/**/auth.ts", "/w/app/src/auth.ts", True),
        ("src/", "/w/app/src/api/auth.ts", True),
        ("src/", "/w/app/source/auth.ts", False),
        ("/w/*/src/", "/w/app/src/auth.ts", True),
        ("/src/", "/w/app/src/auth.ts", False),
        ("a?th.ts", "auth.ts", True),
        ("[a-z].ts", "a.ts", False),
    ],
)
def test_patterns_cover_paths(pattern: str, path: str, covered: bool) -> None:
    """`*` and `?` match within a name, `**` matches across folders, and a final slash matches everything below."""
    assert is_path_pattern(pattern) or "[" in pattern
    assert path_fits(pattern, path) is covered


def test_a_hostile_pattern_is_fast() -> None:
    """The time for a pattern with many stars does not grow exponentially."""
    started = time.process_time()

    assert not path_fits("*a" * 500 + "b", "a" * 5_000)
    assert time.process_time() - started < 5
