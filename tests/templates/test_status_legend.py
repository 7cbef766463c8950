"""Every word in the status has a legend."""

from palaver.archiver.formats.transcript_format import SkipReason
from palaver.archiver.lines import Reason
from palaver.archiver.store.source_table import DELETED
from palaver.core.home import Own
from palaver.templates.environment import OUTCOMES, STEPS, outcomes, step


def test_every_outcome_has_a_meaning() -> None:
    """The legend has exactly the reasons that the readers give."""
    assert set(OUTCOMES) == {*SkipReason, *Reason, *Own, DELETED, "unknown-type"}
    assert all(OUTCOMES.values())


def test_outcomes_are_sorted_and_unknown_types_are_added_up() -> None:
    """The most frequent reason comes first. Unknown types are one line with three names."""
    types = {f"unknown-type:{name}": 2 for name in ("a", "b", "c", "d")}
    skipped = {"progress": 5, **types, "unknown-type": 1, "new-reason": 1}

    assert list(outcomes(skipped, 7)) == [
        (9, "unknown-type", f"{OUTCOMES['unknown-type']}: a, b, c and 1 other"),
        (7, "repeated", OUTCOMES["repeated"]),
        (5, "progress", OUTCOMES["progress"]),
        (1, "new-reason", ""),
    ]
    assert list(outcomes({"unknown-type": 1})) == [(1, "unknown-type", OUTCOMES["unknown-type"])]
    assert list(outcomes({})) == []


def test_steps_are_described() -> None:
    """A step that is not in the legend is shown by its name."""
    assert step("publish") == STEPS["publish"] == "publish the index"
    assert step("polish") == "polish"
