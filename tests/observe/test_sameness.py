"""Is only that a repetition which says the same, value for value?"""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from palaver.core.observation import Observation, ObservationType
from palaver.observe.sameness import mark, same

LONG = (
    "The import job reads the customers file in batches, checks every row against the schema, writes the valid rows"
    " and reports the broken rows with their position"
)


def noted(title: str, *facts: str, **values: object) -> Observation:
    return Observation(ObservationType.DECISION, title, facts=facts, **values)  # type: ignore[arg-type]


def repeats(first: Observation, second: Observation, projects: tuple[str, str] = ("shop", "shop")) -> bool:
    return mark(first, projects[0]) == mark(second, projects[1]) and same(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (noted("Use tabs in templates"), noted("Use tabs in templates.")),
        (noted("Always run the linter"), noted("always run the linters")),
        (noted("Import in batches", LONG), noted("Import in batches", LONG + " afterwards")),
        (noted("Keep it", narrative="Asked on Monday"), noted("Keep it", narrative="Asked on Monday")),
    ],
)
def test_the_same_in_other_grammar_is_a_repetition(first: Observation, second: Observation) -> None:
    """Punctuation, endings and a small addition to something long make nothing new."""
    assert repeats(first, second)
    assert repeats(second, first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (noted("Retry 3 times"), noted("Retry 5 times")),
        (noted("Make the button red"), noted("Make the button blue")),
        (noted("Make the button"), noted("Make the button blue")),
        (noted("Ana owns billing"), noted("Ben owns billing")),
        (noted("Use `retry_once` here"), noted("Use `retry_twice` here")),
        (noted("Use tabs"), noted("Do not use tabs")),
        (noted("Enable the cache"), noted("Disable the cache")),
        (noted("Import", LONG), noted("Import", LONG.replace("customers", "suppliers"))),
        (noted("Import", LONG), noted("Import", LONG, "Prices are in cents")),
        (noted("Bump it", files_modified=("a.toml",)), noted("Bump it", files_modified=("b.toml",))),
        (noted("Use tabs", origin="human"), noted("Use tabs", origin="assistant")),
    ],
)
def test_another_value_is_never_a_repetition(first: Observation, second: Observation) -> None:
    """A changed number, name, colour, file or negation is something else, and so is somebody else's word."""
    assert not repeats(first, second)
    assert not repeats(second, first)


def test_another_project_is_another_place() -> None:
    """What holds in one project is not said of another."""
    assert not repeats(noted("Use tabs"), noted("Use tabs"), ("shop", "blog"))


@given(st.text(max_size=80), st.lists(st.text(max_size=80), max_size=3))
@example("00A0", ["00\u00c0"])
def test_whatever_is_said_repeats_itself(title: str, facts: list[str]) -> None:
    """Any observation is a repetition of itself, whichever rules made it."""
    one = noted(title, *facts)

    assert repeats(one, replace(one, extractor="rules-9"))
