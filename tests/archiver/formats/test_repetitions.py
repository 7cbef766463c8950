"""Content that an agent records twice: the record that is kept, and the line of the other record."""

from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.formats import Event
from palaver.archiver.formats.record_events import SkipReason
from palaver.archiver.formats.repetitions import Repetitions
from palaver.core.conversation import Kind, Skipped, Speaker, Turn


def turn(line: int) -> Turn:
    return Turn(line, Speaker.ASSISTANT, Kind.PROSE, "x")


def hold(repetitions: Repetitions, key: str, line: int) -> bool:
    """Return whether a turn is held back."""
    return repetitions.hold(key, [turn(line)], alone=True) == []


def test_a_turn_is_skipped_if_the_better_record_follows() -> None:
    """The line of a turn with a later, better record counts as repeated."""
    released = list[Event]()
    repetitions = Repetitions(released)

    assert hold(repetitions, "a", 1)
    repetitions.record("a")
    assert released == [Skipped(1, SkipReason.REPEATED)]


def test_a_turn_is_not_held_if_the_better_record_came_before() -> None:
    """One better record accounts for every repetition."""
    repetitions = Repetitions([])
    repetitions.record("a")

    assert not hold(repetitions, "a", 1)
    assert not hold(repetitions, "a", 2)
    assert hold(repetitions, "b", 3)


def test_a_turn_that_shares_its_line_is_kept() -> None:
    """A turn is kept if its line has other events and so cannot be skipped."""
    assert Repetitions([]).hold("a", [turn(1)], alone=False) == [turn(1)]


def test_a_turn_without_a_better_record_is_released_at_the_end_of_the_exchange() -> None:
    """Turns are released in line order, and no state remains for the next exchange."""
    released = list[Event]()
    repetitions = Repetitions(released)
    hold(repetitions, "b", 1)
    hold(repetitions, "a", 2)
    hold(repetitions, "b", 3)
    repetitions.record("c")
    repetitions.settle()

    assert [each.line for each in released] == [1, 2, 3]
    assert hold(repetitions, "c", 4)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abc"))))
def test_content_with_a_better_record_appears_only_there(records: list[tuple[bool, str]]) -> None:
    """Every held turn yields exactly one event, and only turns without a better record are kept."""
    released, held = list[Event](), list[int]()
    repetitions = Repetitions(released)
    for line, (better, key) in enumerate(records):
        if better:
            repetitions.record(key)
        elif hold(repetitions, key, line):
            held.append(line)
    repetitions.settle()
    recorded = {key for better, key in records if better}

    assert sorted(each.line for each in released) == held
    assert {each.line for each in released if isinstance(each, Turn)} == {
        line for line, (better, key) in enumerate(records) if not better and key not in recorded
    }
