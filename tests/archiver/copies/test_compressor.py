"""Inactive copies are compressed without changing any result of search or reading."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from palaver.archiver.copies import verification
from palaver.archiver.copies.raw_copy import COMPRESSED_SUFFIX, UNFINISHED, Copy
from palaver.archiver.copies.verification import QUIET, CopyCompressor
from palaver.archiver.store import Store
from palaver.core import conversation
from palaver.core.reports import Compression

from ... import crash_injection
from ..history import FORK, ORIGINAL, History, talk

WORKER = "tests.archiver.copies.compression_worker"
KILLS = 6


def compress(history: History, budget: float = 60) -> Compression:
    return CopyCompressor(history.store, history.raw).run(budget=budget)


def compressed(history: History) -> set[str]:
    return {
        name.removesuffix(COMPRESSED_SUFFIX) for name in history.archive_files() if name.endswith(COMPRESSED_SUFFIX)
    }


def test_inactive_copies_are_compressed(history: History) -> None:
    """A session is inactive a week after its last line, or if its file was not changed for a week."""
    quiet = history.write(talk("quiet"), ORIGINAL)
    for name, age in (("just", QUIET - 60_000), ("ahead", -QUIET)):
        line = conversation.show_instant(conversation.now() - age)
        path = history.write([{**each, "timestamp": line} for each in talk(name, session=name)], name)
        history.touch(path, (conversation.now() - age) // 1000 - 1_700_000_000)
    history.ingest()
    before = history.dump()

    done = compress(history)
    assert (done.compressed, done.waiting, done.problems) == (1, 0, [])
    assert done.before == quiet.stat().st_size
    assert compressed(history) == {f"claude-code/shop/{ORIGINAL}.jsonl"}
    assert history.dump() == before
    assert compress(history).compressed == 0


def test_a_compressed_session_continues(history: History) -> None:
    """A session resumed after weeks is parsed from its last position, and no exchange is stored twice."""
    history.write(talk("one", "two"))
    history.ingest()
    first = history.source()
    compress(history)
    path = history.append(talk("three"))

    history.ingest()
    assert history.prompts() == ["one?", "two?", "three?"]
    assert history.copy(history.source()) == path.read_bytes()
    assert history.source().id == first.id
    assert history.source().coverage == {"parsed": 6}
    assert compressed(history) == set()
    assert compress(history).compressed == 1
    assert history.copy(history.source()) == path.read_bytes()


def test_a_fork_of_a_compressed_session_adds_no_duplicates(history: History) -> None:
    """Records of a compressed session are recognised like those of an uncompressed session."""
    history.write(talk("one"))
    history.ingest()
    compress(history)
    history.write([*talk("one", session=FORK), *talk("apart", session=FORK)], FORK, at=4)

    history.ingest()
    assert history.prompts(FORK) == ["apart?"]
    assert history.source(FORK).coverage == {"parsed": 2, "repeated": 2}


def test_compressed_copies_without_a_database_are_reused(history: History, tmp_path: Path) -> None:
    """Compressed copies without a row are recognised by their content and stay compressed."""
    path = history.write(talk("one"))
    history.ingest()
    compress(history)
    history.store.close()
    history.home.database.unlink()
    Store.create_anew(history.home.database).close()

    with History(tmp_path) as again:
        again.ingest()
        assert again.prompts() == ["one?"]
        assert again.copy(again.source()) == path.read_bytes()
        assert all(name.endswith(COMPRESSED_SUFFIX) for name in again.archive_files())


def test_a_run_stops_at_its_time_limit(history: History) -> None:
    """A run stops at its time limit and reports the number of copies that are left to the next run."""
    for number in range(3):
        history.write(talk(f"n{number}", session=f"s{number}"), f"s{number}", at=3 - number)
    history.ingest()

    assert compress(history, budget=-1).waiting == 3
    done = compress(history)
    assert (done.compressed, done.waiting) == (3, 0)


def test_the_oldest_copies_come_first(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies unchanged for longest are compressed first, because their sessions are least likely to resume."""
    for number in range(3):
        history.write(talk(f"n{number}", session=f"s{number}"), f"s{number}", at=3 - number)
    history.ingest()
    order: list[str] = []

    def compress_none(copy: Copy) -> tuple[int, int]:
        order.append(Path(copy.archived).stem)
        return 1, 1

    monkeypatch.setattr(Copy, "compress", compress_none)
    compress(history)
    assert order == ["s2", "s1", "s0"]


def test_a_copy_that_cannot_be_compressed_stays_as_it_is(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is reported with the file's name, and the other copies are still compressed."""
    path = history.write(talk("one"))
    history.write(talk("two", session=FORK), FORK)
    history.ingest()
    whole, full = Copy.compress, history.source().archived

    def refuse(copy: Copy) -> tuple[int, int]:
        if copy.archived == full:
            raise OSError(28, "No space left on device")
        return whole(copy)

    monkeypatch.setattr(Copy, "compress", refuse)
    done = compress(history)
    assert (done.compressed, [str(problem) for problem in done.problems]) == (
        1,
        [f"{history.home.archive / full}: No space left on device"],
    )
    assert history.copy(history.source()) == path.read_bytes()


def test_temporary_files_of_an_interrupted_run_are_deleted(history: History) -> None:
    """The next run deletes unfinished files of an interrupted run."""
    left = history.home.archive / UNFINISHED / "left"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")

    compress(history)
    assert not left.exists()


def test_files_that_agents_compressed_stay_as_they_are(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that the agent has already compressed are not compressed again."""
    monkeypatch.setattr(verification, "_ALREADY_COMPRESSED", {".jsonl"})
    history.write(talk("one"))
    history.ingest()

    assert compress(history).compressed == 0


def test_a_killed_run_is_completed_by_the_next(tmp_path: Path) -> None:
    """A run killed while copies change their format loses no byte and stores no exchange twice."""
    with History(tmp_path, "before") as history:
        for number in range(3):
            history.write(talk(f"n{number}", session=f"s{number}"), f"s{number}", at=number)
        history.ingest()
        assert compress(history).compressed == 3
        for number in range(2):
            history.append(talk(f"more{number}", session=f"s{number}"), f"s{number}", at=5 + number)
        history.write(talk("new", session=FORK), FORK, at=9)
        files = {path.name: path.read_bytes() for path in history.folder.rglob("*.jsonl")}
    changes = crash_injection.steps(run_worker(tmp_path, "calm", 0))
    with History(tmp_path, "calm") as calm:
        rows = calm.dump()

    for point in random.Random(2026).sample(range(1, changes + 1), KILLS):
        crash_injection.kill(lambda at: run_worker(tmp_path, "killed", at), point)
        with History(tmp_path, "killed") as history:
            for source in history.store.sources.all():
                assert files[source.path.name].startswith(history.copy(source))
                assert len(history.copy(source)) >= source.size
            history.ingest()
            compress(history)
            assert history.dump() == rows, point
            for source in history.store.sources.all():
                assert history.copy(source) == files[source.path.name], point
            assert set(history.archive_files()) == {f"claude-code/shop/{name}{COMPRESSED_SUFFIX}" for name in files}, (
                point
            )


def run_worker(root: Path, home: str, at: int) -> subprocess.CompletedProcess[str]:
    """Run the worker in a home restored from `before`. It kills itself at disk change `at` unless `at` is 0."""
    shutil.rmtree(root / home, ignore_errors=True)
    shutil.copytree(root / "before", root / home)
    return crash_injection.run(WORKER, "run", root / "projects", root / home, at)
