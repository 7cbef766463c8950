"""Does forgetting outlive the database?"""

# pyright: reportPrivateUsage=false

import shutil
from pathlib import Path

import orjson
import pytest

from palaver.archiver.copies.inspection import names
from palaver.archiver.copies.raw import RawArchive
from palaver.archiver.intake.transcripts import in_paths
from palaver.archiver.store import State, Store
from palaver.archiver.store.database import REGISTER
from palaver.archiver.store.register import Entry, Register
from palaver.core.errors import StoreError
from palaver.core.forgetting import Wanted
from palaver.core.home import Home
from palaver.observe import pipeline
from palaver.observe.forget import erasure
from palaver.observe.forget.forgetting import Forgetter
from palaver.observe.pipeline import Pipeline
from palaver.observe.upkeep import fsck as checking
from palaver.observe.upkeep import rebuilding
from palaver.observe.upkeep.fsck import fsck
from palaver.observe.upkeep.rebuilding import rebuild_from_archive
from palaver.search import layers

from ...archiver.history import FORK, ORIGINAL, History, talk
from ...search.fake_embedder import FakeEmbedder

OTHER = "33333333-0000-4000-8000-000000000003"
KIMI = [
    {"role": "_system_prompt", "content": "You are Kimi."},
    {"role": "user", "content": "kimi asked about herons"},
    {"role": "assistant", "content": "kimi told about herons"},
    {"role": "user", "content": "kimi asked about storks"},
    {"role": "assistant", "content": "kimi told about storks"},
]


@pytest.fixture(autouse=True)
def _no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_: str) -> FakeEmbedder:
        return FakeEmbedder()

    for module in (pipeline, erasure, rebuilding, checking, layers):
        monkeypatch.setattr(module, "load", load)


def archive(history: History) -> None:
    with Pipeline(history.home) as pipeline:
        pipeline.run(in_paths([history.folder]))


def forget(home: Home, *targets: str, erase: bool = False, mentions: str = "") -> int:
    wanted = Wanted(targets=targets, erase=erase, mentions=mentions)
    with Forgetter(home) as forgetter:
        done = forgetter.forget(wanted, forgetter.preview(wanted).token)
    assert done.number is not None
    return done.number


def lose(home: Home) -> None:
    """Delete the database, as a failing disk or a person does."""
    for path in home.root.glob("palaver.db*"):
        path.unlink()


def rebuilt(history: History, *, remain: bool) -> list[str]:
    """What was asked, in a database that was made anew from the copies, and with what the agents still have."""
    transcripts = in_paths([history.folder]) if remain else []
    made = rebuild_from_archive(history.home, transcripts)
    assert made.problems == []
    return asked(history.home)


def asked(home: Home) -> list[str]:
    with Store.open(home.database) as store:
        keys = [each.key for each in store.exchanges.outlines()]
        return [each.exchange.prompt for each in store.exchanges.load(keys).values()]


def copies(home: Home) -> bytes:
    """What all copies say, whatever their form."""
    found = b""
    for name in names(home.archive):
        with RawArchive(home.archive).open(name) as file:
            found += file.read()
    return found


def lines_of(data: bytes) -> list[bytes]:
    """All lines that say something, in any order."""
    return sorted(line for line in data.splitlines() if line.strip())


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Two sessions, a fork of the first, and one of an agent whose lines carry neither ids nor times."""
    made = History(tmp_path)
    made.store.close()
    made.write(talk("one", "secret", "three"))
    made.write([*talk("one", "secret", session=FORK), *talk("branched", session=FORK)], FORK, at=2)
    made.write(talk("whole", session=OTHER), OTHER, at=3)
    return made


@pytest.mark.parametrize("remain", [True, False], ids=["files remain", "copies alone"])
@pytest.mark.parametrize("erase", [True, False], ids=["erased", "forgotten"])
def test_a_lost_database_brings_nothing_back(history: History, erase: bool, remain: bool) -> None:
    """With a new database what was forgotten stays so, everything else is back, and the copies are as they were."""
    archive(history)
    forget(history.home, mentions="secret", erase=erase)
    forget(history.home, OTHER, erase=erase)
    before = copies(history.home)
    lose(history.home)

    assert sorted(rebuilt(history, remain=remain)) == ["branched?", "one?", "three?"]

    assert (b"secret" in copies(history.home)) is not erase
    assert lines_of(copies(history.home)) == lines_of(before)
    assert fsck(history.home).findings == []
    with Forgetter(history.home) as forgetter:
        assert [each.until is None for each in forgetter.forgotten()] == [erase, erase]


def test_what_can_be_undone_still_can(history: History) -> None:
    """After the loss of the database a forgetting is undone as before it."""
    archive(history)
    number = forget(history.home, mentions="secret")
    lose(history.home)
    rebuilt(history, remain=True)

    with Forgetter(history.home) as forgetter:
        forgetter.undo(number)

    assert "secret?" in asked(history.home)
    lose(history.home)
    assert "secret?" in rebuilt(history, remain=True)


def test_the_next_pass_is_enough(history: History) -> None:
    """Who archives into a new database without any rebuild is told nothing that was forgotten either."""
    archive(history)
    forget(history.home, mentions="secret", erase=True)
    lose(history.home)
    archive(history)

    assert "secret?" not in asked(history.home)
    assert b"secret" not in copies(history.home)


@pytest.mark.parametrize("remain", [True, False], ids=["files remain", "copies alone"])
@pytest.mark.parametrize("erase", [True, False], ids=["erased", "forgotten"])
def test_lines_without_ids(history: History, erase: bool, remain: bool) -> None:
    """Lines that only their place tells apart are known in the copy when the agent's file is gone."""
    folder = history.folder / "sessions" / "0123456789abcdef0123456789abcdef" / OTHER
    folder.mkdir(parents=True)
    path = folder / "context.jsonl"
    path.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in KIMI))
    archive(history)
    assert "kimi asked about storks" in asked(history.home)
    forget(history.home, mentions="storks", erase=erase)
    lose(history.home)

    found = rebuilt(history, remain=remain)

    assert "kimi asked about herons" in found
    assert "kimi asked about storks" not in found
    assert (b"storks" in copies(history.home)) is not erase


def test_an_erasure_that_was_not_finished_is_finished(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    """A database that is lost in the middle of an erasure brings nothing back: the copies are cleaned after all."""
    archive(history)

    def killed(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(erasure, "finish", killed)
        with pytest.raises(KeyboardInterrupt):
            forget(history.home, mentions="secret", erase=True)
    assert b"secret" in copies(history.home)
    lose(history.home)
    for path in history.folder.rglob("*.jsonl"):
        path.unlink()

    assert "secret?" not in rebuilt(history, remain=False)
    assert b"secret" not in copies(history.home)


@pytest.mark.parametrize("erase", [True, False], ids=["erased", "forgotten"])
def test_a_restored_backup_brings_nothing_back(history: History, erase: bool) -> None:
    """A database from before a forgetting takes over what the register tells, with the next pass at the latest."""
    archive(history)
    backup = history.home.root.with_name("backup.db")
    shutil.copy(history.home.database, backup)
    forget(history.home, mentions="secret", erase=erase)
    forget(history.home, OTHER, erase=erase)
    lose(history.home)
    shutil.copy(backup, history.home.database)

    archive(history)

    assert sorted(asked(history.home)) == ["branched?", "one?", "three?"]
    if erase:
        assert b"secret" not in copies(history.home)
        assert b"whole" not in copies(history.home)
        with Store.open(history.home.database) as store:
            assert store.sessions.find("claude-code", OTHER) is None
            assert {each.state for each in store.tombstones.all()} == {State.ERASED}


def test_a_lost_register_is_written_again(history: History) -> None:
    """Whoever opens the database next writes what it knows."""
    archive(history)
    forget(history.home, mentions="secret")
    register = history.home.archive / REGISTER
    before = Register(register).read().entries
    register.unlink()
    Store.open(history.home.database).close()

    assert Register(register).read().entries == before
    assert before


def test_the_register_says_nothing(history: History) -> None:
    """It holds numbers, times, states and keyed marks, and only its owner may read it."""
    archive(history)
    forget(history.home, mentions="secret")
    register = history.home.archive / REGISTER

    data = register.read_bytes()
    assert not any(word in data for word in (b"secret", b"one", ORIGINAL[:8].encode(), b"claude", b"shop"))
    assert register.stat().st_mode & 0o077 == 0


def test_a_damaged_line_costs_one_forgetting(tmp_path: Path) -> None:
    """What cannot be read is counted; everything else is taken over."""
    register = Register(tmp_path / "archive" / REGISTER)
    register.write(7, [Entry(1, 5, "kept", (1, -2)), Entry(2, 6, "erased", (2**63 - 1, -(2**63)))])
    path = tmp_path / "archive" / REGISTER
    assert register.seq() == 7
    data = bytearray(path.read_bytes())
    data[data.index(b" 1 5 kept") + 1] ^= 2
    path.write_bytes(data)

    found = register.read()

    assert (found.seq, found.damaged) == (7, 1)
    assert found.entries == (Entry(2, 6, "erased", (2**63 - 1, -(2**63))),)
    with Store.create(tmp_path / "palaver.db") as store:
        assert [each.id for each in store.tombstones.all()] == [2]
        assert store.tombstones.lost == 1


def test_nothing_is_forgotten_that_cannot_be_registered(history: History) -> None:
    """Where the register cannot be written, forgetting fails as a whole and says so."""
    archive(history)
    (history.home.archive / f"{REGISTER}.new").mkdir()

    with pytest.raises(StoreError, match="cannot be written"):
        forget(history.home, mentions="secret")

    assert "secret?" in asked(history.home)
