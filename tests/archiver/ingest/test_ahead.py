"""Reading ahead: what other processes parse is what this one would have parsed, and nothing depends on them."""

# pyright: reportPrivateUsage=false

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from palaver.archiver.copies.raw import Copied, RawArchive
from palaver.archiver.formats.registry import by_agent
from palaver.archiver.ingest import ingest, processes
from palaver.archiver.ingest.ahead import Ahead
from palaver.archiver.ingest.processes import Helper, Helpers
from palaver.archiver.ingest.task import Answer, Task

from ..history import History, talk

SESSIONS = 12
KEY = b"k" * 32


@pytest.fixture
def history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[History]:
    """Some sessions, and every pass worth the help of two processes."""
    monkeypatch.setattr(processes, "processors", lambda: 3)
    monkeypatch.setattr(ingest, "_WORTH_HELP", 0)
    with History(tmp_path) as made:
        for number in range(SESSIONS):
            made.write(talk(f"w{number}", f"x{number}", session=f"s{number}"), f"s{number}", at=number)
        yield made


def _tasks(history: History, copied: bool = True) -> dict[str, tuple[Task, Future[Copied]]]:
    """A task for each session; its copy is there, or will never be."""
    tasks = dict[str, tuple[Task, Future[Copied]]]()
    raw = RawArchive(history.home.archive)
    for path in sorted(history.folder.rglob("*.jsonl")):
        copy = Future[Copied]()
        if copied:
            copy.set_result(raw.copy(path, path.name))
        tasks[path.name] = (Task(by_agent("claude-code"), path, raw.root, path.name, KEY), copy)
    return tasks


def test_others_parse_what_this_process_would(history: History) -> None:
    """An answer from another process equals the task run here."""
    tasks = _tasks(history)
    with Helpers() as started, Ahead(tasks, started.start(2)) as parsed:
        with parsed._news:
            assert parsed._news.wait_for(lambda: len(parsed._answers) == len(tasks), timeout=200)
        answers = {name: parsed.take(name) for name in tasks}

    assert answers == {name: task.run() for name, (task, _) in tasks.items()}


def test_what_is_copied_meanwhile_is_parsed_meanwhile(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits for an answer takes up the next task as soon as its copy is there."""
    asked, go_on = threading.Event(), threading.Event()

    answer = Helper.answer

    def slow(helper: Helper) -> Answer | None:
        asked.set()
        assert go_on.wait(200)
        return answer(helper)

    monkeypatch.setattr(Helper, "answer", slow)
    tasks = _tasks(history)
    first, second = list(tasks)[:2]
    copied, copy = tasks[second][1].result(), Future[Copied]()
    tasks = {first: tasks[first], second: (tasks[second][0], copy)}
    with Helpers() as started, Ahead(tasks, started.start(1)) as parsed, ThreadPoolExecutor(1) as pool:
        assert asked.wait(200)
        taken = pool.submit(parsed.take, first)
        copy.set_result(copied)
        with parsed._news:
            answered = parsed._news.wait_for(lambda: second in parsed._answers, timeout=200)
        go_on.set()

        assert answered
        assert taken.result() == tasks[first][0].run()


def test_help_changes_nothing(history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass with other processes leaves what a pass without them leaves, in the same order."""
    history.ingest()
    monkeypatch.setattr(processes, "processors", lambda: 1)
    with History(tmp_path, "alone") as alone:
        alone.ingest()

        assert history.dump() == alone.dump()


def test_a_process_that_dies_is_not_missed(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed process was asked is parsed here."""
    ask = Helper.ask

    def killed(helper: Helper, task: Task) -> None:
        os.kill(helper._process.pid, signal.SIGKILL)
        ask(helper, task)

    monkeypatch.setattr(Helper, "ask", killed)
    tally = history.ingest()

    assert (tally.changed, tally.exchanges, tally.problems) == (SESSIONS, 2 * SESSIONS, [])


@pytest.mark.parametrize("greeting", ["Hi, site!\\n", "Welcome\\n"])
def test_what_else_is_printed_is_no_answer(
    history: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, greeting: str
) -> None:
    """What an environment prints when Python starts neither stops a pass nor moves an answer to another task, also
    where it has just as many bytes as the size of an answer.
    """
    greeted = f"print('{greeting}', end='', flush=True); {processes._SERVE}"
    monkeypatch.setattr(processes, "_SERVE", greeted)
    history.ingest()
    monkeypatch.setattr(processes, "processors", lambda: 1)
    with History(tmp_path, "alone") as alone:
        alone.ingest()

        assert history.dump() == alone.dump()


def test_who_leaves_early_waits_for_nobody(history: History) -> None:
    """Who leaves does not wait for copies that will never be there, nor for the processes."""
    with Helpers() as started:
        asked = started.start(2)
        with Ahead(_tasks(history, copied=False), asked):
            pass

        assert [helper._process.wait(60) for helper in asked] == [-signal.SIGKILL] * 2
