"""Tasks that run until they are killed, each in a forked process.

Every task writes its acknowledged results to a separate file, one JSON list per line.
"""

import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any, Final

from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.home import Home
from palaver.core.memory import Memory
from palaver.core.query import Query
from palaver.observe import pipeline
from palaver.observe import pipeline as observe_pending
from palaver.observe.archive import Archive
from palaver.observe.memory import memory_core
from palaver.search import archive_search
from palaver.search.archive_search import ArchiveSearch
from palaver.search.present import hits
from palaver.search.rank import engine

from ..archiver.formats.claude_code.claude_lines import jsonl
from ..archiver.history import talk
from ..search.fake_embedder import FakeEmbedder

PRELOADED: Final = (engine, hits, observe_pending)
PACE: Final = 0.05
"""Seconds that a task pauses after each action, since all tasks share two cores."""
LONG_AGO: Final = 1_700_000_000
WORDS: Final = "amber birch cedar delta ember flint grove heron ivory juniper kelp larch maple nectar opal pine".split()


class Acks:
    """Append-only file of acknowledged results, one write per line."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def add(self, *values: object) -> None:
        os.write(self._file, json.dumps(values).encode() + b"\n")


def archive(root: str, acks: str) -> None:
    """Repeat ingest runs and acknowledge each completed run."""
    home, log = Home(Path(root) / "home"), Acks(acks)
    with pipeline.Pipeline(home) as passes:
        for number in count():
            report = passes.run(in_paths([Path(root) / "projects"]), patience=30)
            assert not report.ingested.problems, report.ingested.problems
            log.add("pass", number)
            time.sleep(PACE)


def keep(root: str, acks: str) -> None:
    """Repeat writing and archiving a line, and acknowledge the line after the run."""
    chance, log, name = random.Random(acks), Acks(acks), Path(acks).stem
    for number in count():
        path, prompt = say(Path(root), chance, name, number)
        with pipeline.Pipeline(Home(Path(root) / "home")) as passes:
            report = passes.run(in_paths([path.parent]), patience=30)
        assert not report.ingested.problems, report.ingested.problems
        log.add("kept", prompt)


def remember(root: str, acks: str) -> None:
    """Store memories one after another and acknowledge each."""
    chance, log, name = random.Random(acks), Acks(acks), Path(acks).stem
    with Archive(Home(Path(root) / "home")).memories as core:
        for number in count():
            content = " ".join([f"memory{name}x{number}", *chance.choices(WORDS, k=6)])
            done = core.remember(Memory(content, "fact"))
            assert not done.duplicate
            log.add("memory", content)
            time.sleep(PACE)


def converse(root: str, acks: str) -> None:
    """Extend sessions repeatedly and acknowledge each exchange."""
    chance, log, name = random.Random(acks), Acks(acks), Path(acks).stem
    for number in count():
        _, prompt = say(Path(root), chance, name, number)
        log.add("said", prompt)
        time.sleep(PACE)


def say(root: Path, chance: random.Random, name: str, number: int) -> tuple[Path, str]:
    """Append an exchange to one of four sessions.

    Two sessions look old, so that they are compressed between two exchanges.
    """
    session, word = f"{name}-{chance.randrange(4)}", f"said{name}x{number}"
    path = root / "projects" / "shop" / f"{session}.jsonl"
    with path.open("ab", buffering=0) as file:
        file.write(jsonl(talk(word, session=session)))
    if session.endswith(("0", "1")):
        os.utime(path, (LONG_AGO + number, LONG_AGO + number))
    return path, f"{word}?"


def search(root: str, acks: str, others: str) -> None:
    """Search for the newest acknowledged item repeatedly, and report the CPU time of the first reply."""
    started, chance, log = time.process_time(), random.Random(acks), Acks(acks)
    with ArchiveSearch(Home(Path(root) / "home")) as asked:
        for number in count():
            content = chance.choice(latest(Path(others)))
            found = asked.find(Query.parse(content.split()[0], mode="text")).hits
            assert any(content.split()[0] in hit.title + hit.snippet for hit in found), content
            if not number:
                log.add("answered", time.process_time() - started)
            time.sleep(PACE)


def latest(folder: Path) -> list[str]:
    """Return the newest acknowledged memory of each process."""
    ends = [path.read_bytes().splitlines()[-1:] for path in folder.glob("remember*")]
    return [json.loads(line)[1] for (line,) in filter(None, ends)]


RUNNING: Final = set[int]()
"""Processes that were started but not yet waited for."""
TASKS: Final[dict[str, Callable[..., None]]] = {
    "archive": archive,
    "keep": keep,
    "remember": remember,
    "converse": converse,
    "search": search,
}


def start(task: str, *arguments: str) -> int:
    """Start a process and return its process ID."""
    number = os.fork()
    if number:
        RUNNING.add(number)
        return number
    status = 1
    try:
        os.close(0)
        os.dup2(2, 1)
        TASKS[task](*arguments)
        status = 0
    except BaseException:  # noqa: BLE001 - the edge of this process
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def kill(*numbers: int) -> None:
    for number in numbers:
        os.kill(number, signal.SIGKILL)
    for number in numbers:
        os.waitpid(number, 0)
        RUNNING.discard(number)


def failed() -> list[int]:
    """Return the processes that exited with an error."""
    found: list[int] = []
    while True:
        try:
            number, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if not number:
            return found
        RUNNING.discard(number)
        if status:
            found.append(number)


def fake(_model: str = "", *, record: Path | None = None) -> FakeEmbedder:  # noqa: ARG001 - as `embedder.load`
    """Return a fake embedder for every model."""
    return FakeEmbedder()


def serve() -> None:
    """Execute the commands on standard input until it ends."""
    for module in (pipeline, memory_core, archive_search):
        vars(module)["load"] = fake
    asked: dict[str, Callable[..., Any]] = {"start": start, "kill": kill, "failed": failed}
    for line in sys.stdin:
        what, arguments = json.loads(line)
        print(json.dumps(asked[what](*arguments)), flush=True)
    kill(*RUNNING)


if __name__ == "__main__":
    serve()
