"""Content that an agent records twice counts once. The more detailed record is used."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.formats import Event
from palaver.archiver.formats.json_values import Repetitions
from palaver.archiver.formats.registry import by_agent
from palaver.archiver.formats.transcript_format import SkipReason
from palaver.core.conversation import Kind, Skipped, Speaker, Turn

from .reading import changed_by_resuming, jsonl, prompts

CONTINUE: dict[str, dict[str, Any]] = {
    "windsurf": {"type": "user_input", "status": "done", "user_input": {"user_response": "continue"}},
    "cursor": {"role": "user", "message": {"content": [{"type": "text", "text": "continue"}]}},
    "kimi-cli": {"role": "user", "content": "continue"},
    "vibe": {"role": "user", "content": "continue"},
}
"""Prompt without an ID and a time."""


def turn(line: int) -> Turn:
    return Turn(line, Speaker.ASSISTANT, Kind.PROSE, "x")


def delay(repetitions: Repetitions, key: str, line: int) -> bool:
    """Return whether a turn is delayed."""
    return repetitions.delay(key, [turn(line)], only_record=True) == []


def test_a_turn_is_skipped_if_the_better_record_follows() -> None:
    """If a better record of a turn follows, the turn's line counts as repeated."""
    released = list[Event]()
    repetitions = Repetitions(released)

    assert delay(repetitions, "a", 1)
    repetitions.register("a")
    assert released == [Skipped(1, SkipReason.REPEATED)]


def test_a_turn_is_not_delayed_if_the_better_record_came_before() -> None:
    """After a better record, equal turns are dropped at once, without delay."""
    repetitions = Repetitions([])
    repetitions.register("a")

    assert not delay(repetitions, "a", 1)
    assert not delay(repetitions, "a", 2)
    assert delay(repetitions, "b", 3)


def test_a_turn_that_shares_its_line_is_kept() -> None:
    """A turn is kept if its line has other events and so cannot be skipped."""
    assert Repetitions([]).delay("a", [turn(1)], only_record=False) == [turn(1)]


def test_a_turn_without_a_better_record_is_released_at_the_end_of_the_exchange() -> None:
    """At the end of an exchange, delayed turns are released in line order, and no state remains."""
    released = list[Event]()
    repetitions = Repetitions(released)
    delay(repetitions, "b", 1)
    delay(repetitions, "a", 2)
    delay(repetitions, "b", 3)
    repetitions.register("c")
    repetitions.settle()

    assert [each.line for each in released] == [1, 2, 3]
    assert delay(repetitions, "c", 4)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"))))
def test_content_with_a_better_record_appears_only_there(records: list[tuple[bool, str]]) -> None:
    """Every delayed turn yields one event: a skip if there is a better record, otherwise the turn."""
    released, delayed = list[Event](), list[int]()
    repetitions = Repetitions(released)
    for line, (better, key) in enumerate(records):
        if better:
            repetitions.register(key)
        elif delay(repetitions, key, line):
            delayed.append(line)
    repetitions.settle()
    recorded = {key for better, key in records if better}

    assert sorted(each.line for each in released) == delayed
    assert {each.line for each in released if isinstance(each, Turn)} == {
        line for line, (better, key) in enumerate(records) if not better and key not in recorded
    }


@pytest.mark.parametrize("agent", CONTINUE)
def test_an_equal_prompt_without_an_id_and_a_time_is_another_prompt(agent: str) -> None:
    """The user may write "continue" twice. Only an ID or a time proves that a program wrote a line twice."""
    known = by_agent(agent)
    assert known is not None

    assert prompts(known, CONTINUE[agent], CONTINUE[agent]) == ["continue", "continue"]
    assert changed_by_resuming(known, jsonl([CONTINUE[agent]] * 3)) == []
    for field in ({"id": "0c4f6a1e-0000-4000-8000-000000000001"}, {"timestamp": "2026-03-01T10:00:00.000Z"}):
        line = CONTINUE[agent] | field
        assert prompts(known, line, line) == ["continue"]
