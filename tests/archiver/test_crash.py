"""After a crash, or with concurrent runs, the next ingest run completes the archive."""

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.store import Lease

from .. import crash_injection
from .formats.claude_code.claude_lines import jsonl
from .history import FORK, History, talk

WORKER = "tests.archiver.worker"
OTHER = "33333333-0000-4000-8000-000000000003"
KILLS = 12


def run(mode: str, history: Path, home: str, *rest: int) -> subprocess.CompletedProcess[str]:
    return crash_injection.run(WORKER, mode, history / "projects", history / home, *rest)


@pytest.fixture(scope="module")
def history_root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the folder of a history that was archived in `before`, and was then extended, forked and rewritten."""
    root = tmp_path_factory.mktemp("kill")
    with History(root, "before") as history:
        history.write(talk("one", "two"), at=1)
        history.write(talk("other", session=OTHER), OTHER, at=2)
        history.ingest()
        history.append(talk("three"), at=3)
        history.write([*talk("one", session=FORK), *talk("apart", session=FORK)], FORK, at=4)
        history.write(talk("another", session=OTHER), OTHER, at=5)
        for number in range(4):
            history.write(talk(f"new{number}", session=f"s{number}"), f"s{number}", at=6 + number)
    yield root
    shutil.rmtree(root)


def restore_home(root: Path, home: str) -> str:
    """Create a home as it was before the history grew."""
    shutil.rmtree(root / home, ignore_errors=True)
    shutil.copytree(root / "before", root / home)
    return home


def test_killed_ingest_run_is_completed_by_the_next(history_root: Path) -> None:
    """After a run killed at any step, the next run produces the same archive as an uninterrupted run."""
    steps = crash_injection.steps(run("kill", history_root, restore_home(history_root, "calm"), 0))
    with History(history_root, "calm") as calm:
        rows, copies = calm.dump(), calm.archive_files()

    for point in random.Random(2026).sample(range(1, steps + 1), KILLS):
        crash_injection.kill(lambda at: run("kill", history_root, restore_home(history_root, "killed"), at), point)
        with History(history_root, "killed") as history:
            sources = history.store.sources.by_path().values()
            assert all(len(history.copy(source)) >= source.size for source in sources)
            history.ingest()
            assert history.dump() == rows, point
            assert history.archive_files() == copies, point


def test_two_processes_take_turns(history_root: Path) -> None:
    """Of two processes that start at once, one waits for the other, and the result equals that of a single run."""
    home = restore_home(history_root, "contested")
    command = crash_injection.command(WORKER, "wait", history_root / "projects", history_root / home)
    both = [
        subprocess.Popen(command, cwd=crash_injection.ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    ends = [worker.communicate() for worker in both]

    assert [worker.returncode for worker in both] == [0, 0], ends
    assert run("plain", history_root, restore_home(history_root, "alone")).returncode == 0
    with History(history_root, home) as contested, History(history_root, "alone") as alone:
        assert contested.dump() == alone.dump()
        assert contested.archive_files() == alone.archive_files()
        contested.store.leases.check(Lease("archiver", 2))


def test_a_line_of_200_megabytes_needs_little_memory(tmp_path: Path) -> None:
    """One huge line is archived byte for byte and counted but never loaded. The lines around it are parsed."""
    size = 200 * 1024 * 1024
    before, after = jsonl(talk("one")), jsonl(talk("two"))
    with History(tmp_path) as history:
        path = history.write(before + b'{"type":"user","message":{"content":"')
        with path.open("r+b") as file:
            file.truncate(size)
            file.seek(0, 2)
            file.write(b'"}}\n' + after)
        grew = int(run("plain", tmp_path, "home").stdout)

        assert history.prompts() == ["one?", "two?"]
        assert history.source().coverage == {"parsed": 4, "oversized": 1}
        assert (history.home.archive / history.source().archived).stat().st_size == path.stat().st_size
        assert grew < 128 * 1024 * 1024
    shutil.rmtree(tmp_path)
