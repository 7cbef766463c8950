"""Tests of several processes that use the same files, and of a killed process."""

import subprocess
import sys
from pathlib import Path

from .client import Agent

ROOT = Path(__file__).parents[3]


def writer(historian: Agent, name: str, count: int, home: str = "palaver") -> subprocess.Popen[str]:
    """Start a process that stores notes under one title and prints each path after the reply."""
    place = [str(historian.folder / home), str(historian.project), name, str(count)]
    command = [sys.executable, "-m", "tests.agents.historian.once", *place]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def test_processes_that_write_the_same_title_overwrite_nothing(historian: Agent) -> None:
    """Three processes write at once, one of them without a shared lease. Every file is kept and stored once."""
    homes = {"ann": "palaver", "bob": "palaver", "eve": "another"}
    running = [writer(historian, name, 4, home) for name, home in homes.items()]
    paths = [Path(line) for each in running for line in each.communicate(timeout=200)[0].split()]

    assert [each.returncode for each in running] == [0, 0, 0]
    assert len(set(paths)) == 12
    bodies = {each.read_text().rpartition("\n---\n\n")[2].strip() for each in paths}
    assert bodies == {f"Note {number} of {name}" for number in range(4) for name in homes}
    assert historian.problems() == {}
    memories = historian.core.page(limit=100)
    assert sorted(each.memory.path for each in memories) == sorted(map(str, paths))


def test_stored_files_survive_a_kill(historian: Agent) -> None:
    """A killed process leaves complete files, and the next call stores each file once."""
    running = writer(historian, "ann", 1_000)
    assert running.stdout is not None
    answered = [running.stdout.readline().strip() for _ in range(5)]
    running.kill()
    answered += running.communicate(timeout=200)[0].split()
    historian("memory_list_types")
    files = sorted((historian.project / ".mnemonics" / "learning").glob("*.md"))

    assert set(answered) <= set(map(str, files))
    assert historian.problems() == {}
    memories = historian.core.page(limit=1_000)
    assert sorted(each.memory.path for each in memories) == [str(each) for each in files]
    assert all(each.read_text().endswith(" of ann\n") for each in files)
