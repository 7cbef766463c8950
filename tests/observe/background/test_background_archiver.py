"""The background archiver archives continuously and recovers from failures."""

# pyright: reportPrivateUsage=false

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.store import ARCHIVER, Store
from palaver.archiver.store.tombstone_table import KeyLost
from palaver.archiver.watch.file_events import FileEvents
from palaver.archiver.watch.watchers import TranscriptWatcher
from palaver.cli.watch import _model_command
from palaver.core.config import Config, write_settings
from palaver.core.deletion import UNDO_PERIOD, DeletionRequest, DeletionState
from palaver.core.errors import LeaseHeld, PalaverError, StoreMissing
from palaver.core.home import Home
from palaver.core.query import Query
from palaver.observe.background import schedule
from palaver.observe.background.background_archiver import BackgroundArchiver
from palaver.observe.deletion.deleter import Deleter
from palaver.observe.upkeep.archive_status import status_of
from palaver.search.archive_search import ArchiveSearch
from palaver.search.index.generation import Generations, Manifest

from ...archiver.formats.claude_code.claude_lines import jsonl
from ...archiver.history import talk
from ..llm import agent
from ..llm.test_agent_command import is_running

PROMPT = 2.0
"""Seconds within which a written line is found."""
ATTEMPTS = 20
"""Number of lines of a kind that may be found late on a busy machine."""
ENDED = 20.0
"""Seconds within which the archiver ends, even on a busy machine. Work that must not delay it takes longer."""
DEADLINE = 120.0
"""Seconds after which a test stops waiting."""
NUMBER = "11111111-0000-4000-8000-00000000000"
STARTS = 4


@pytest.fixture
def projects(home: Path) -> Path:
    """Return Claude Code's transcript folder for this user."""
    folder = home / ".claude" / "projects"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def place(home: Path) -> Home:
    return Home(home / "palaver")


def write(projects: Path, *words: str, number: int = 1, folder: str = "shop") -> Path:
    """Add exchanges to a session."""
    path = projects / folder / f"{NUMBER[:-1]}{number:02x}.jsonl"
    path.parent.mkdir(exist_ok=True)
    with path.open("ab") as file:
        file.write(jsonl(talk(*words, session=path.stem)))
    return path


def until(what: Callable[[], bool], seconds: float = DEADLINE) -> float:
    """Wait until a condition is true, and return the elapsed seconds."""
    start = time.monotonic()
    while time.monotonic() < start + seconds:
        if what():
            return time.monotonic() - start
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s")


def found(place: Home, word: str) -> bool:
    """Return whether a new reader finds a word."""
    try:
        with ArchiveSearch(place) as layers:
            return any(word in hit.title or word in hit.snippet for hit in layers.find(Query.parse(word)).hits)
    except StoreMissing:
        return False


def watched(place: Home) -> bool:
    try:
        return status_of(place).watcher is not None
    except StoreMissing:
        return False


@contextmanager
def watching(*options: str) -> Generator["subprocess.Popen[str]"]:
    """Run the archiver as a user starts it."""
    command = [sys.executable, "-m", "palaver", "watch", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate()


def next_event(process: "subprocess.Popen[str]", event: str) -> dict[str, Any]:
    """Return the archiver's next event of a kind. The test's timeout ends the wait."""
    assert process.stdout
    for line in process.stdout:
        row: dict[str, Any] = json.loads(line)
        if row["event"] == event:
            return row
    raise AssertionError(f"it ended without the event {event}")


def stop(process: "subprocess.Popen[str]", how: signal.Signals = signal.SIGTERM) -> float:
    """Stop the archiver, and return the elapsed seconds."""
    start = time.monotonic()
    process.send_signal(how)
    process.wait(DEADLINE)
    return time.monotonic() - start


def prompts(place: Home) -> list[str]:
    """Return the stored prompts, including duplicates."""
    with Store.open(place.database) as store:
        keys = store.items.all_keys()
        return sorted(each.exchange.prompt for each in store.exchanges.load(keys).values()) if keys else []


def is_stored(place: Home, word: str) -> bool:
    return f"{word}?" in prompts(place)


def test_a_new_line_is_found_within_seconds(projects: Path, place: Home) -> None:
    """On an idle machine, other processes find a new line within two seconds, in an old file, a new file and a new
    folder.

    Observations follow soon after, and the archiver can then be stopped without unfinished work.
    """
    write(projects, "before")
    with watching() as archiver:
        next_event(archiver, "ingested")
        until(lambda: found(place, "before"))
        with ArchiveSearch(place) as layers:

            def is_found(word: str) -> bool:
                return any(word in hit.title for hit in layers.find(Query.parse(word)).hits)

            def waited(word: str, number: int, folder: str = "shop") -> float:
                write(projects, word, number=number, folder=folder)
                return until(partial(is_found, word))

            numbers = range(2, 2 + ATTEMPTS)
            assert any(waited(f"copper{number}", 1) < PROMPT for number in numbers)
            assert any(waited(f"silver{number}", number) < PROMPT for number in numbers)
            assert any(waited(f"golden{number}", 100 + number, f"fresh{number}") < PROMPT for number in numbers)
        until(lambda: status_of(place).unembedded == 0 == status_of(place).unobserved)
        state = status_of(place)
        assert state.watcher
        assert state.watcher.who == f"process {archiver.pid}"
        assert {each.name for each in state.stages if each.succeeded and not each.fails} >= {
            "archive",
            "watch",
            "embed",
        }
        assert stop(archiver) < ENDED
        assert archiver.returncode == 0
    assert status_of(place).watcher is None
    log = place.log.read_text()
    assert "ingested files=1" in log
    assert "stopped" in log
    assert "copper" not in log


def test_expired_deletions_are_erased(projects: Path, place: Home) -> None:
    """The archiver removes expired deletions from the copies without any other command."""
    write(projects, "lasting")
    gone = write(projects, "fleeting", number=2)
    with watching():
        until(lambda: watched(place) and is_stored(place, "fleeting"))
    with Deleter(place) as deleter:
        wanted = DeletionRequest(targets=(gone.stem,))
        assert deleter.delete(wanted, deleter.preview(wanted).token).number
    with Store.open(place.database) as store:
        store._database.run("UPDATE deletion SET at = at - ?", (UNDO_PERIOD + 86_400_000,))

    with watching():
        until(lambda: not any(b"fleeting" in path.read_bytes() for path in place.archive.rglob("*.jsonl")))
        until(lambda: erased(place))
    assert prompts(place) == ["lasting?"]


def erased(place: Home) -> bool:
    with Store.open(place.database) as store:
        return {each.state for each in store.tombstones.all()} == {DeletionState.ERASED}


def test_replaced_index_generations_are_removed(place: Home) -> None:
    """A generation of the index without readers is removed, even if no other generation is published."""
    generations = Generations(place.index)
    for _ in range(2):
        generations.publish(_empty)
    os.utime(place.index / "gen-2" / "manifest.json", (1_000, 1_000))
    with watching():
        until(lambda: not (place.index / "gen-1").exists())

    assert (place.index / "gen-2").exists()


def _empty(folder: Path) -> Manifest:
    (folder / "text").mkdir()
    return Manifest(1, "fake/1", 32, 0, 0, {})


def test_only_one_archiver_runs(projects: Path, place: Home) -> None:
    """A second archiver reports the first and ends. Other commands work, and Ctrl-C ends the first archiver."""
    write(projects, "before")
    with watching() as archiver:
        next_event(archiver, "ingested")

        again = subprocess.run(
            [sys.executable, "-m", "palaver", "watch"], capture_output=True, text=True, check=False, timeout=DEADLINE
        )
        assert again.returncode == 1
        assert f"already running: process {archiver.pid} " in again.stderr
        assert "palaver status" in again.stderr
        other = write(projects, "elsewhere", number=2)
        moved = other.rename(projects.parent / other.name)
        done = subprocess.run(
            [sys.executable, "-m", "palaver", "archive", str(moved)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert found(place, "elsewhere")
        assert stop(archiver, signal.SIGINT) < ENDED
        assert archiver.returncode == 0


def test_killed_again_and_again(projects: Path, place: Home) -> None:
    """If the archiver is killed at random moments and restarted, each line is stored exactly once."""
    chance = random.Random(2026)
    wanted: list[str] = []
    for start in range(STARTS):
        with watching() as archiver:
            for step in range(5):
                word = f"word{start}x{step}"
                write(projects, word, number=step % 2 + 1)
                wanted.append(f"{word}?")
                time.sleep(chance.uniform(0, 0.4))  # kill the process at a random moment
            archiver.kill()
    with watching() as archiver:
        until(lambda: place.has_database and set(prompts(place)) == set(wanted))
        write(projects, "last")
        until(lambda: "last?" in prompts(place))
        stop(archiver)

    assert prompts(place) == sorted([*wanted, "last?"])
    assert status_of(place).unaccounted == []
    assert status_of(place).problems == []


def test_an_unwritable_home_is_retried(projects: Path, place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the home cannot be created, the archiver reports the failure and retries until it succeeds."""
    write(projects, "one")
    place.root.write_text("in the way")
    below = Home(place.root / "below")
    monkeypatch.setenv("PALAVER_HOME", str(below.root))
    with watching() as archiver:
        row = next_event(archiver, "failed")
        assert f"{below.root} cannot be created" in row["problem"]
        assert row["again_in"] >= 1
        place.root.unlink()
        next_event(archiver, "ingested")

        assert found(below, "one")


@pytest.mark.skipif(sys.platform != "linux", reason="the limits of another process can be set on Linux only")
def test_a_full_disk_is_retried(projects: Path, place: Home) -> None:
    """If the disk is full, the archiver reports it and retries. After space is freed, no line is missing."""
    import resource

    write(projects, "one")
    with watching() as archiver:
        next_event(archiver, "ingested")
        resource.prlimit(archiver.pid, resource.RLIMIT_FSIZE, (100, resource.RLIM_INFINITY))
        write(projects, "two")
        row = next_event(archiver, "failed")
        assert row["problem"]
        assert archiver.poll() is None
        resource.prlimit(archiver.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        until(lambda: "two?" in prompts(place))
        stop(archiver)

    assert prompts(place) == ["one?", "two?"]


def test_a_moved_home_is_created_again(projects: Path, place: Home, tmp_path: Path) -> None:
    """If the archive is moved away while the archiver runs, a new archive is created."""
    write(projects, "one")
    with watching() as archiver:
        next_event(archiver, "ingested")
        place.root.rename(tmp_path / "moved")
        next_event(archiver, "failed")
        next_event(archiver, "ingested")

        assert prompts(place) == ["one?"]


def test_a_name_in_another_encoding_is_no_delay(projects: Path, place: Home) -> None:
    """New lines are ingested in time even if the event library fails at a file name in another encoding."""
    path = Path(os.fsdecode(os.fsencode(projects / "caf") + b"\xe9")) / f"{NUMBER}1.jsonl"
    with watching() as archiver:
        next_event(archiver, "watching")
        until(lambda: watched(place))
        path.parent.mkdir()
        for word in ("copper", "silver"):
            with path.open("ab") as file:
                file.write(jsonl(talk(word, session=path.stem)))
            until(partial(is_stored, place, word))
        stop(archiver)


@pytest.fixture
def busy(place: Home) -> Iterator[Store]:
    """Open the store as another process of Palaver would."""
    place.make()
    with Store.create(place.database) as store:
        yield store


def test_while_another_process_archives(projects: Path, place: Home, busy: Store) -> None:
    """The archiver waits for another ingest process, and then ingests the lines written meanwhile."""
    with watching() as archiver:
        next_event(archiver, "watching")
        until(lambda: watched(place))
        with busy.leases.hold(ARCHIVER):
            write(projects, "copper")
            time.sleep(1.5)  # long enough for the archiver to be refused
            assert prompts(place) == []
        until(lambda: prompts(place) == ["copper?"])
        stop(archiver)


def test_failures_are_reported_once_with_a_hint(place: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure is reported once with its hint, and retried until it is resolved.

    A second archiver is the only failure that ends the process.
    """
    events: list[str] = []
    busy = LeaseHeld("process 1 holds the index lease", hint="Wait until it has finished.")
    lost = KeyLost(place.key_file, place.tombstone_file)
    outcomes: Iterator[PalaverError | None] = iter([busy, busy, busy, lost, busy, None, None, busy])

    def step(*_: object) -> None:
        problem = next(outcomes, None)
        if problem is not None:
            raise problem

    def report(event: str, numbers: Mapping[str, object]) -> None:
        events.append(f"{event} {numbers.get('problem', '')}".rstrip())

    def wait(_seconds: float) -> None:
        if len(events) > 5:
            raise KeyboardInterrupt

    monkeypatch.setattr(TranscriptWatcher, "step", step)
    archiver = BackgroundArchiver(place, FileEvents(poll=True), report, wait=wait)
    with pytest.raises(KeyboardInterrupt):
        archiver.run()

    failures = [f"failed {problem.full_message}" for problem in (busy, lost)]
    assert events == ["watching", *failures, failures[0], "watching", failures[0]]


def test_a_stop_is_noticed_between_files(projects: Path, place: Home) -> None:
    """A stop signal whose exception was discarded ends an ingest run after the current file."""
    for number in range(1, 60):
        write(projects, f"word{number}", number=number)
    calls = 0

    def check_stop() -> None:
        nonlocal calls
        calls += 1
        if calls > 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        BackgroundArchiver(place, FileEvents(poll=True), lambda _event, _data: None, check_stop=check_stop).run()

    assert len(prompts(place)) < 59


def test_settings_apply_while_the_archiver_runs(projects: Path, place: Home) -> None:
    """Newly excluded folders are ignored without a restart, and invalid settings change nothing."""
    write(projects, "use it")
    with watching() as archiver:
        next_event(archiver, "ingested")
        place.config.write_text('exclude = ["/home/demo/shop"]\n')
        assert next_event(archiver, "settings")["exclude"] == 1
        place.config.write_text("exclude = 5\n")
        write(projects, "kept out", number=2)
        path = projects / "other" / f"{NUMBER}3.jsonl"
        path.parent.mkdir()
        path.write_bytes(jsonl(talk("say it", session=path.stem, project="/home/demo/other")))
        until(lambda: len(prompts(place)) == 2)
        stop(archiver)

    assert not [prompt for prompt in prompts(place) if "kept out" in prompt]


def run_with_agent(projects: Path, place: Home, log: Path, behaviour: str, until_event: str) -> list[str]:
    """Run an archiver with an agent as language model until an event, and return the events.

    While the agent works, a new line is written.
    """
    words = (sys.executable, agent.__file__, behaviour, str(log))
    write_settings(place.config, {"llm": "command", "llm_command": words})
    events: list[str] = []

    def settings() -> Config:
        if log.with_suffix(".child").exists() and not log.with_suffix(".new").exists():
            log.with_suffix(".new").touch()
            write(projects, "copper")
        return Config.read(place.config)

    def report(event: str, _numbers: Mapping[str, object]) -> None:
        events.append(event)
        if event == until_event and log.exists():
            raise KeyboardInterrupt

    archiver = BackgroundArchiver(place, FileEvents(poll=True), report, settings, _model_command)
    with pytest.raises(KeyboardInterrupt):
        archiver.run()
    return events


def test_quiet_sessions_are_sent_to_the_model(
    projects: Path, place: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user's agent gets quiet sessions. New lines are archived while it works, and it ends with the archiver."""
    monkeypatch.setattr(schedule, "QUIET", 0.0)
    monkeypatch.setenv("PALAVER_HOME", str(place.root))
    place.make()
    log = tmp_path / "log"
    write(projects, "zephyr " * 60)

    run_with_agent(projects, place, log, "slow", "ingested")

    assert "copper?" in prompts(place)
    process, child = json.loads(log.read_text())["pid"], int(log.with_suffix(".child").read_text())
    until(lambda: not is_running(process) and not is_running(child))
    with Store.open(place.database) as store:
        [call] = store.ledger.by_model()
    assert (call.calls, call.unanswered) == (1, 1)

    assert "failed" not in run_with_agent(projects, place, log, "claude", "extracted")
    with Store.open(place.database) as store:
        assert store.ledger.outcomes() == {"card": 1}
