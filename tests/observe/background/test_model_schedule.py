"""A separate process sends finished sessions to the language model, neither too often nor at the same time."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from palaver.core.errors import PalaverError
from palaver.observe.background.schedule import ModelResult, ModelSchedule

from .test_index_schedule import Clock

SLEEP = "import sys, time; open(sys.argv[1], 'w').close(); time.sleep(600)"


def printing(status: int = 0, /, **fields: object) -> list[str]:
    """Return a command that prints a result as `palaver observe --json` does, among other fields."""
    text = json.dumps({"asked": 1, "cost": 0.0, **fields})
    return [sys.executable, "-c", f"import sys; print({text!r}); sys.exit({status})"]


class Harness:
    """Schedule with a clock and a command that a test sets."""

    def __init__(self) -> None:
        self.time, self.command = Clock(), printing(cards=2, observations=3)
        self.asked = 0
        self.schedule = ModelSchedule(self._words, self.time)

    def _words(self) -> Sequence[str]:
        self.asked += 1
        return self.command

    def after(self, seconds: float) -> ModelResult | PalaverError | None:
        """Return the result of the process that starts after a delay, or None if no process starts."""
        self.time.now += seconds
        before = self.asked
        assert self.schedule.step() is None
        if self.asked == before or not self.command:
            return None
        return self.wait()

    def wait(self) -> ModelResult | PalaverError:
        """Return the result of the running process. The test's timeout ends the wait."""
        while (result := self.schedule.step()) is None:
            time.sleep(0.01)
        return result


@pytest.fixture
def harness() -> Iterator[Harness]:
    made = Harness()
    yield made
    made.schedule.stop()


def until(what: Callable[[], bool]) -> None:
    """Wait until a condition is true. The test's timeout ends the wait."""
    while not what():
        time.sleep(0.01)


def test_start_ten_minutes_after_the_archiver(harness: Harness) -> None:
    """The first process starts ten minutes after the archiver, and no other without new lines."""
    assert harness.after(599) is None
    assert harness.after(1) == ModelResult(cards=2, observations=3)
    assert [harness.after(3_600) for _ in range(5)] == [None] * 5


def test_new_lines_are_sent_when_they_are_quiet(harness: Harness) -> None:
    """After new lines, processes start every ten minutes until the last lines were quiet for ten minutes."""
    harness.after(600)
    harness.schedule.note_ingest()
    assert harness.after(300) is None
    harness.schedule.note_ingest()
    assert harness.after(300) is not None
    assert harness.after(599) is None
    assert harness.after(1) is not None
    assert [harness.after(3_600) for _ in range(3)] == [None] * 3


@pytest.mark.parametrize("left", [{"waiting": 1}, {"waiting": 4, "stopped": "budget_day has $0.00 left"}])
def test_remaining_requests_are_tried_every_hour(harness: Harness, left: dict[str, object]) -> None:
    """If a batch is not answered yet, or a limit is reached, the next process starts an hour later."""
    harness.command = printing(**left)
    assert isinstance(harness.after(600), ModelResult)

    assert harness.after(3_599) is None
    assert isinstance(harness.after(1), ModelResult)
    harness.command = printing()
    harness.after(3_600)
    assert harness.after(36_000) is None


def test_failures_are_retried_ever_later(harness: Harness) -> None:
    """A failure is returned, and retried after growing delays of at most six hours."""
    harness.command = printing(1, stopped="the key was refused")

    problem = harness.after(600)

    assert isinstance(problem, PalaverError)
    assert str(problem) == "model extraction failed: the key was refused"
    assert harness.schedule.next_in == 600
    for delay in (600, 1_200, 2_400, 4_800, 9_600, 19_200, 21_600, 21_600):
        assert harness.after(delay - 1) is None
        assert isinstance(harness.after(1), PalaverError)


def test_output_of_a_crashed_process_is_reported(harness: Harness) -> None:
    """The end of other output becomes the message."""
    harness.command = [sys.executable, "-c", "raise SystemExit('palaver: config.toml is invalid')"]

    assert str(harness.after(600)) == "model extraction failed: palaver: config.toml is invalid"


def test_error_before_the_extraction_is_reported(harness: Harness) -> None:
    """The message and the hint of an error that `palaver observe --json` prints are reported."""
    harness.command = printing(1, error={"message": "config.toml is invalid", "hint": "Correct line 3."})

    problem = harness.after(600)

    assert isinstance(problem, PalaverError)
    assert (str(problem), problem.hint) == ("model extraction failed: config.toml is invalid", "Correct line 3.")


def test_warnings_do_not_hide_the_result(harness: Harness) -> None:
    """Text on standard error does not change the result on standard output."""
    code = "import sys; print('a warning', file=sys.stderr); print('{\"cards\": 2}')"
    harness.command = [sys.executable, "-c", code]

    assert harness.after(600) == ModelResult(cards=2)


def test_no_process_without_a_model(harness: Harness) -> None:
    """If no model is configured, nothing is started, and the settings are read again after new lines."""
    harness.command = []
    assert harness.after(600) is None
    assert harness.after(36_000) is None
    assert harness.asked == 1

    harness.command = printing(cards=1)
    harness.schedule.note_ingest()
    assert harness.after(600) == ModelResult(cards=1)


def test_one_process_at_a_time_that_ends_with_the_archiver(harness: Harness, tmp_path: Path) -> None:
    """While a process runs, no step waits for it and no other starts. It ends with the archiver."""
    started = tmp_path / "started"
    harness.command = [sys.executable, "-c", SLEEP, str(started)]
    harness.time.now += 600
    assert harness.schedule.step() is None
    until(started.exists)
    for _ in range(5):
        harness.schedule.note_ingest()
        harness.time.now += 600
        assert harness.schedule.step() is None
    assert harness.asked == 1

    start = time.monotonic()
    harness.schedule.stop()

    assert time.monotonic() - start < 5
    assert harness.schedule.step() is None
