"""An observation repeats another only if all its values are equal."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.core.observation import Observation, ObservationType
from palaver.observe.extraction.observation_writer import fingerprint, is_repetition

from ...cases import for_each

LONG = (
    "The import job reads the customers file in batches, checks every row against the schema, writes the valid rows"
    " and reports the broken rows with their position"
)


def noted(title: str, *facts: str, **values: object) -> Observation:
    return Observation(ObservationType.DECISION, title, facts=facts, **values)  # type: ignore[arg-type]


def repeats(first: Observation, second: Observation, projects: tuple[str, str] = ("shop", "shop")) -> bool:
    return fingerprint(first, projects[0]) == fingerprint(second, projects[1]) and is_repetition(first, second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (noted("Use tabs in templates"), noted("Use tabs in templates.")),
        (noted("Always run the linter"), noted("always run the linters")),
        (noted("Import in batches", LONG), noted("Import in batches", LONG + " afterwards")),
        (noted("Keep it", narrative="Asked on Monday"), noted("Keep it", narrative="Asked on Monday")),
        (noted("Please just use the tabs in templates"), noted("Use tabs in templates")),
        (noted("Import in steady batches", LONG), noted("Import in batches", LONG)),
        (
            noted("Import", "Prices are in cents", "Rows are checked"),
            noted("Import", "Rows are checked", "Prices are in cents"),
        ),
    ],
)
def test_grammar_does_not_matter(first: Observation, second: Observation) -> None:
    """Punctuation, inflection, filler words, order of facts and short additions do not make a new observation."""
    assert repeats(first, second)
    assert repeats(second, first)


@for_each(
    "first, second",
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
        (noted("Import", LONG, "customers come first"), noted("Import", LONG, "suppliers come first")),
        (noted("Bump it", files_modified=("a.toml",)), noted("Bump it", files_modified=("b.toml",))),
        (noted("Use tabs", origin="human"), noted("Use tabs", origin="assistant")),
        (noted("Turn the cache on in tests"), noted("Turn the cache off in tests")),
        (noted("The cache was removed"), noted("The cache was renamed")),
        (noted("Use tabs only in templates"), noted("Use tabs also in templates")),
        (noted("All tests must pass"), noted("Some tests may pass")),
        (noted("Deploy", "Copy staging over production"), noted("Deploy", "Copy production over staging")),
        (noted("Sort", "The list is sorted by a > b"), noted("Sort", "The list is sorted by a < b")),
        (noted("Return -1 for it"), noted("Return 1 for it")),
        (noted("Move it by -12px"), noted("Move it by 12px")),
        (noted("Wait .5 seconds"), noted("Wait 5 seconds")),
        (noted("Stop if !ready"), noted("Stop if ready")),
        (noted("Delete ./build"), noted("Delete /build")),
        (noted("Push with --force"), noted("Push with force")),
        (noted("Import", LONG), noted("Import", LONG + " without Ana")),
        (noted("Import", LONG), noted("Import", LONG.replace("broken", "red broken"))),
        (noted("Import", LONG), noted("Import", LONG.replace("writes", "never writes"))),
        (noted("Import", LONG), noted("Import", LONG.replace("every row", "only every row"))),
    ],
)
def test_another_value_is_never_a_repetition(first: Observation, second: Observation) -> None:
    """A changed number, name, colour, file, symbol, location, negation or origin makes a new observation."""
    assert not repeats(first, second)
    assert not repeats(second, first)


def test_another_project_is_never_a_repetition() -> None:
    """An observation never repeats an observation of another project."""
    assert not repeats(noted("Use tabs"), noted("Use tabs"), ("shop", "blog"))


PLAIN = st.sampled_from("cart invoice header customer parser footer ledger basket ticket report".split())
PROSE = st.lists(PLAIN, min_size=14, max_size=24)
VALUES = st.sampled_from(
    ["7", "3.5%", "Ana", "`retry_once`", "src/cart.py", "red", "not", "off", "GmbH", "tabs", "Python", "--all"]
)


def prose(words: list[str]) -> Observation:
    return noted("Import of customers", " ".join(words))


@given(PROSE, VALUES, VALUES, st.data())
def test_changed_value_is_never_a_repetition(words: list[str], old: str, new: str, data: st.DataObject) -> None:
    """A changed number, name, colour or negation makes a new observation at any position."""
    place = data.draw(st.integers(1, len(words)))
    first, second = (prose([*words[:place], value, *words[place:]]) for value in (old, new))

    assert repeats(first, second) is (old == new)
    assert not repeats(first, prose(words))
    assert not repeats(prose(words), first)


@given(PROSE, PLAIN, st.data())
def test_another_word_or_order_is_never_a_repetition(words: list[str], other: str, data: st.DataObject) -> None:
    """Replacing one word or exchanging two makes a new observation."""
    place = data.draw(st.integers(0, len(words) - 2))
    swapped = [*words[:place], words[place + 1], words[place], *words[place + 2 :]]
    replaced = [*words[:place], other, *words[place + 1 :]]

    assert repeats(prose(words), prose(swapped)) is (swapped == words)
    assert repeats(prose(words), prose(replaced)) is (replaced == words)


@given(PROSE, st.lists(st.tuples(st.integers(0, 24), PLAIN), max_size=8))
def test_few_added_words_are_a_repetition(words: list[str], more: list[tuple[int, str]]) -> None:
    """Additional plain words, up to a fifth of the text, do not make a new observation in either order."""
    longer = list(words)
    for place, word in more:
        longer.insert(place, word)
    few = len(more) <= 0.2 * (len(longer) + 3)

    assert repeats(prose(words), prose(longer)) is few
    assert repeats(prose(longer), prose(words)) is few


@given(st.text(max_size=80), st.lists(st.text(max_size=80), max_size=3))
@example("00A0", ["00\u00c0"])
def test_observation_repeats_itself(title: str, facts: list[str]) -> None:
    """Every observation repeats itself, regardless of the rules that extracted it."""
    one = noted(title, *facts)

    assert repeats(one, replace(one, extractor="rules-9"))
