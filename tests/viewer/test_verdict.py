"""Tests of the verdict of the health checks."""

from pathlib import Path

import pytest

from palaver.core.reports import HealthProblem, HealthReport
from palaver.viewer.verdict import Check, Verdict

WATCHER = HealthProblem("watcher", "not running", "Run `palaver install service`.")
FOLDER = HealthProblem("folder", "full", "Free some space.")


def verdict(*problems: HealthProblem, unread: int = 0, is_watched: bool = True) -> Verdict:
    facts = {"folder": "1 GB free", "watcher": "running" if is_watched else "not running", "commands": "answered"}
    report = HealthReport(Path("/home"), facts, list(problems))
    return Verdict(report, list(problems), unread, 19747, is_watched)


@pytest.mark.parametrize(
    ("result", "sentence", "level"),
    [
        (verdict(), "Everything is archived", "good"),
        (verdict(unread=23), "Everything is archived; 23 of 19,747 lines were not read", "warn"),
        (verdict(unread=1), "Everything is archived; 1 of 19,747 lines was not read", "warn"),
        (verdict(is_watched=False), "Everything is archived; no watcher is running", "warn"),
        (verdict(WATCHER, is_watched=False), "1 problem: watcher", "bad"),
        (verdict(FOLDER, FOLDER, WATCHER), "3 problems: folder and watcher", "bad"),
    ],
)
def test_one_sentence_states_the_problems_the_unread_lines_and_a_missing_watcher(
    result: Verdict, sentence: str, level: str
) -> None:
    assert (result.sentence, result.level) == (sentence, level)


def test_checks_are_marked_as_passed_or_failed() -> None:
    """What is no check has no mark, nor has a missing watcher where there is nothing to watch."""
    assert list(verdict(FOLDER, is_watched=False).checks()) == [
        Check("failed", "folder", "1 GB free"),
        Check("", "watcher", "not running"),
        Check("", "commands", "answered"),
    ]
