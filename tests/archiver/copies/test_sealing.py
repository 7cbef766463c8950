"""The sealing stage: what is quiet becomes small, and nobody who asks can tell."""

import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.copies import sealing
from palaver.archiver.copies.forms import SEALED, UNFINISHED, Copy
from palaver.archiver.copies.sealing import QUIET, Sealer
from palaver.archiver.store import Store
from palaver.core import clock
from palaver.core.report import Sealing

from ... import fuse
from ..history import FORK, ORIGINAL, History, talk

WORKER = "tests.archiver.copies.sealing_worker"
KILLS = 6


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path) as history:
        yield history


def seal(history: History, budget: float = 60) -> Sealing:
    return Sealer(history.store, history.raw).run(budget=budget)


def sealed(history: History) -> set[str]:
    return {name.removesuffix(SEALED) for name in history.archive_files() if name.endswith(SEALED)}


def test_what_went_quiet_is_sealed(history: History) -> None:
    """A week without a change is quiet; less, or a time that lies ahead, is not."""
    quiet = history.write(talk("quiet"), ORIGINAL)
    for name, age in (("just", QUIET - 60_000), ("ahead", -QUIET)):
        path = history.write(talk(name, session=name), name)
        history.touch(path, (clock.now() - age) // 1000 - 1_700_000_000)
    history.ingest()
    before = history.dump()

    done = seal(history)
    assert (done.sealed, done.waiting, done.problems) == (1, 0, [])
    assert done.before == quiet.stat().st_size
    assert sealed(history) == {f"claude-code/shop/{ORIGINAL}.jsonl"}
    assert history.dump() == before
    assert seal(history).sealed == 0


def test_a_sealed_session_goes_on(history: History) -> None:
    """Resumed after weeks, it is read on from where it was left, and nothing comes twice."""
    history.write(talk("one", "two"))
    history.ingest()
    first = history.source()
    seal(history)
    path = history.append(talk("three"))

    history.ingest()
    assert history.prompts() == ["one?", "two?", "three?"]
    assert history.copy(history.source()) == path.read_bytes()
    assert history.source().id == first.id
    assert history.source().coverage == {"parsed": 6}
    assert sealed(history) == set()
    assert seal(history).sealed == 1
    assert history.copy(history.source()) == path.read_bytes()


def test_a_fork_of_a_sealed_session_brings_nothing_twice(history: History) -> None:
    """The records of a sealed session are known like all others."""
    history.write(talk("one"))
    history.ingest()
    seal(history)
    history.write([*talk("one", session=FORK), *talk("apart", session=FORK)], FORK, at=4)

    history.ingest()
    assert history.prompts(FORK) == ["apart?"]
    assert history.source(FORK).coverage == {"parsed": 2, "repeated": 2}


def test_a_history_without_its_database_is_taken_up_sealed(history: History, tmp_path: Path) -> None:
    """Sealed copies that no row knows are recognised by their content and stay sealed."""
    path = history.write(talk("one"))
    history.ingest()
    seal(history)
    history.store.close()
    history.home.database.unlink()
    Store.create_anew(history.home.database).close()

    with History(tmp_path) as again:
        again.ingest()
        assert again.prompts() == ["one?"]
        assert again.copy(again.source()) == path.read_bytes()
        assert all(name.endswith(SEALED) for name in again.archive_files())


def test_a_pass_stops_when_its_time_is_up(history: History) -> None:
    """The oldest come first; the others wait for the next pass and are counted."""
    for number in range(3):
        history.write(talk(f"n{number}", session=f"s{number}"), f"s{number}", at=3 - number)
    history.ingest()

    assert seal(history, budget=-1).waiting == 3
    done = seal(history)
    assert (done.sealed, done.waiting) == (3, 0)


def test_the_oldest_come_first(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was quiet for longest is the least likely to go on."""
    for number in range(3):
        history.write(talk(f"n{number}", session=f"s{number}"), f"s{number}", at=3 - number)
    history.ingest()
    order: list[str] = []

    def seal_none(copy: Copy) -> tuple[int, int]:
        order.append(Path(copy.archived).stem)
        return 1, 1

    monkeypatch.setattr(Copy, "seal", seal_none)
    seal(history)
    assert order == ["s2", "s1", "s0"]


def test_what_cannot_be_sealed_stays_as_it_is(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk is reported with the file's name, and stops none of the others."""
    path = history.write(talk("one"))
    history.write(talk("two", session=FORK), FORK)
    history.ingest()
    whole, full = Copy.seal, history.source().archived

    def refuse(copy: Copy) -> tuple[int, int]:
        if copy.archived == full:
            raise OSError(28, "No space left on device")
        return whole(copy)

    monkeypatch.setattr(Copy, "seal", refuse)
    done = seal(history)
    assert (done.sealed, [str(problem) for problem in done.problems]) == (
        1,
        [f"{history.home.archive / full}: No space left on device"],
    )
    assert history.copy(history.source()) == path.read_bytes()


def test_what_an_interrupted_pass_left_is_cleared(history: History) -> None:
    """A form that was never finished takes no room for longer than to the next pass."""
    left = history.home.archive / UNFINISHED / "left"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")

    seal(history)
    assert not left.exists()


def test_what_an_agent_compressed_itself_stays(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second compression would gain nothing."""
    monkeypatch.setattr(sealing, "_PACKED", {".jsonl"})
    history.write(talk("one"))
    history.ingest()

    assert seal(history).sealed == 0


def test_a_pass_that_is_killed_is_completed_by_the_next(tmp_path: Path) -> None:
    """Killed while sealed sessions go on and quiet ones are sealed, a pass leaves every byte and nothing twice."""
    with History(tmp_path, "before") as history:
        for number in range(3):
            history.write(talk(f"n{number}", session=f"s{number}"), f"s{number}", at=number)
        history.ingest()
        assert seal(history).sealed == 3
        for number in range(2):
            history.append(talk(f"more{number}", session=f"s{number}"), f"s{number}", at=5 + number)
        history.write(talk("new", session=FORK), FORK, at=9)
        files = {path.name: path.read_bytes() for path in history.folder.rglob("*.jsonl")}
    changes = fuse.steps(a_pass(tmp_path, "calm", 0))
    with History(tmp_path, "calm") as calm:
        rows = calm.dump()

    for point in random.Random(2026).sample(range(1, changes + 1), KILLS):
        fuse.kill(lambda at: a_pass(tmp_path, "killed", at), point)
        with History(tmp_path, "killed") as history:
            for source in history.store.sources.all():
                assert files[source.path.name].startswith(history.copy(source))
                assert len(history.copy(source)) >= source.size
            history.ingest()
            seal(history)
            assert history.dump() == rows, point
            for source in history.store.sources.all():
                assert history.copy(source) == files[source.path.name], point
            assert set(history.archive_files()) == {f"claude-code/shop/{name}{SEALED}" for name in files}, point


def a_pass(root: Path, home: str, at: int) -> subprocess.CompletedProcess[str]:
    """A pass over the history in a home that is as `before` was, killed at a change unless that is 0."""
    shutil.rmtree(root / home, ignore_errors=True)
    shutil.copytree(root / "before", root / home)
    return fuse.run(WORKER, "pass", root / "projects", root / home, at)
