"""Tests of core/observation.py."""

# pyright: reportPrivateUsage=false

import pytest

from palaver.core.errors import UnknownType
from palaver.core.observation import _ALIASES, Evidence, Observation, ObservationType


@pytest.mark.parametrize("kind", ObservationType)
def test_a_type_is_known_however_it_is_written(kind: ObservationType) -> None:
    """Case, blanks and underscores in a type make no difference."""
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
def test_other_tools_names_are_understood(name: str, kind: str) -> None:
    """Names of other tools map to types."""
    assert ObservationType.parse(name) == kind


def test_an_alias_hides_no_type() -> None:
    """Every alias maps to an existing type and is none itself."""
    assert set(_ALIASES).isdisjoint(ObservationType)
    assert set(_ALIASES.values()) <= set(ObservationType)


@pytest.mark.parametrize("name", ["", "bugs", "bug--fix", "décision"])
def test_an_unknown_type_is_answered_with_the_known_ones(name: str) -> None:
    """The error names the unknown type and all known ones."""
    with pytest.raises(UnknownType) as refused:
        ObservationType.parse(name)
    assert refused.value.name == name
    assert all(kind in refused.value.hint for kind in ObservationType)


def test_equal_observations_are_one() -> None:
    """Observations are compared by value."""
    one, two = (Observation(ObservationType.TEST, "t", facts=("f",), evidence=(Evidence(1, 2, "q"),)) for _ in range(2))

    assert len({one, two}) == 1


def test_lines_reach_from_the_first_to_the_last_proof() -> None:
    """Lines span all evidence; None without any."""
    proven = Observation(ObservationType.TEST, "t", evidence=(Evidence(9, 12, "b"), Evidence(3, 4, "a")))

    assert proven.lines == (3, 12)
    assert Observation(ObservationType.TEST, "t").lines is None


def test_repetitions_are_omitted() -> None:
    """Repeated subtitles and quotes are omitted, but their lines are named."""
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
def test_similar_text_is_no_repetition(title: str, quote: str) -> None:
    """Only exact repetitions are omitted."""
    told = Observation(
        ObservationType.DECISION, title, subtitle=quote, narrative=title, evidence=(Evidence(2, 2, quote),)
    )

    assert told.lead == quote
    assert Observation(ObservationType.DECISION, title, evidence=told.evidence).new_quotes == told.evidence


def test_what_is_part_of_a_word_may_stand_again_by_itself() -> None:
    """A quote inside a longer word is no repetition."""
    told = Observation(ObservationType.DECISION, "Reuse it, and use it", evidence=(Evidence(2, 2, "use it"),))

    assert told.new_quotes == ()


def test_what_only_the_subtitle_says_is_kept() -> None:
    """A subtitle with new text is the lead."""
    told = Observation(
        ObservationType.FEATURE, "A", subtitle="Saved on every key", evidence=(Evidence(2, 2, "every key"),)
    )

    assert told.lead == "Saved on every key"
    assert told.new_quotes == ()
    assert told.source_lines == (2,)
