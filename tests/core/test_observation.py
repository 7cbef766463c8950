"""Tests of core/observation.py."""

import pytest

from palaver.core.errors import UnknownType
from palaver.core.observation import Evidence, Observation, ObservationType, is_open_item

from ..cases import for_each


@for_each("kind", ObservationType)
def test_spelling_variants_of_a_type_are_accepted(kind: ObservationType) -> None:
    """Case, spaces and underscores in a type make no difference."""
    for name in (kind, kind.upper(), f" {kind} ", kind.replace("-", "_"), kind.replace("-", " ").title()):
        assert ObservationType.parse(name) is kind


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("bugfix", "bug-fix"),
        ("BUGFIX", "bug-fix"),
        ("fix", "bug-fix"),
        ("refactoring", "refactor"),
        ("testing", "test"),
        ("configuration", "config"),
        ("discovery", "learning"),
    ],
)
def test_type_names_of_other_tools_are_accepted(name: str, kind: str) -> None:
    """Type names of other tools are mapped to Palaver's types."""
    assert ObservationType.parse(name) == kind


def test_aliases_do_not_hide_types() -> None:
    """Every alias maps to an existing type and differs from all type names."""
    aliases = [alias for kind in ObservationType for alias in kind.aliases]
    assert len(aliases) == len(set(aliases) - set(ObservationType))


@pytest.mark.parametrize("name", ["", "bugs", "bug--fix", "décision"])
def test_unknown_type_lists_the_known_types(name: str) -> None:
    """The error contains the unknown type and all known types."""
    with pytest.raises(UnknownType) as refused:
        ObservationType.parse(name)
    assert str(refused.value) == f"Unknown observation type: {name}"
    assert all(kind in refused.value.hint for kind in ObservationType)


def test_observations_are_compared_by_value() -> None:
    """Observations with equal fields are equal."""
    one, two = (Observation(ObservationType.TEST, "t", facts=("f",), evidence=(Evidence(1, 2, "q"),)) for _ in range(2))

    assert len({one, two}) == 1


def test_lines_span_all_evidence() -> None:
    """Lines reach from the first to the last piece of evidence, and are None without evidence."""
    proven = Observation(ObservationType.TEST, "t", evidence=(Evidence(9, 12, "b"), Evidence(3, 4, "a")))

    assert proven.lines == (3, 12)
    assert Observation(ObservationType.TEST, "t").lines is None


def test_repetitions_are_omitted() -> None:
    """A subtitle or quote that repeats other text is omitted, but its lines are listed."""
    told = Observation(
        ObservationType.DECISION,
        "Use SQLite",
        subtitle="Use SQLite, one file",
        narrative="We agreed: *use SQLite,\none file*.",
        facts=("The plug is pulled.",),
        evidence=(
            Evidence(7, 7, "the plug is pulled"),
            Evidence(3, 3, "Use SQLite, one file."),
            Evidence(9, 9, "Done"),
        ),
    )

    assert told.lead == ""
    assert [proof.quote for proof in told.new_quotes] == ["Done"]
    assert told.source_lines == (3, 7)


@pytest.mark.parametrize(
    ("title", "quote"), [("Let x != 0", "let x == 0"), ("Reuse items", "use it"), ("Anything", "✅ → 🚀")]
)
def test_similar_text_is_not_a_repetition(title: str, quote: str) -> None:
    """Only exact repetitions are omitted."""
    told = Observation(
        ObservationType.DECISION, title, subtitle=quote, narrative=title, evidence=(Evidence(2, 2, quote),)
    )

    assert told.lead == quote
    assert Observation(ObservationType.DECISION, title, evidence=told.evidence).new_quotes == told.evidence


def test_part_of_a_word_is_not_a_repetition() -> None:
    """A quote that occurs only inside a longer word is kept."""
    told = Observation(ObservationType.DECISION, "Reuse it, and use it", evidence=(Evidence(2, 2, "use it"),))

    assert told.new_quotes == ()


def test_subtitle_with_new_text_is_kept() -> None:
    """A subtitle that the narrative does not repeat is the lead."""
    told = Observation(
        ObservationType.FEATURE, "A", subtitle="Saved on every key", evidence=(Evidence(2, 2, "every key"),)
    )

    assert told.lead == "Saved on every key"
    assert told.new_quotes == ()
    assert told.source_lines == (2,)


# Selection of open items.


@pytest.mark.parametrize(
    "fact",
    [
        "Open: The migration of the orders table is not merged.",
        "Open: Question to the user: Should the kettle page keep its badge?",
        "Open: The user interrupted the work on “Move the badge to the kettle page”",
        "Open: The last check, pytest tests/kettle, failed",
        "Next: Run `make load-test`.",
        "Next: Merge feat/badge.",
    ],
)
def test_an_item_with_a_subject_is_open(fact: str) -> None:
    """An item is listed if a reader who was not there knows its subject."""
    assert is_open_item(fact)


@pytest.mark.parametrize(
    "fact",
    [
        "Outcome: The kettle page has a badge.",
        "Open: Push whenever ready.",
        "Open: Question to the user: Which approach would you prefer?",
        "Open: Question to the user: The changes touch the kettle page and no test.",
        "Open: The user interrupted the work on “Commit this”",
        "Open: The last command, git log --oneline -1 origin/HEAD, failed",
    ],
)
def test_an_item_without_a_subject_is_not_open(fact: str) -> None:
    """Routine steps, questions about "it", and failed look-ups are no open items."""
    assert not is_open_item(fact)
