"""A database that somebody else writes and this process may only read."""

# pyright: reportPrivateUsage=false

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

from palaver.archiver.store import Store
from palaver.archiver.store.database import _UnwritableFile
from palaver.core.conversation import Session

from ...unprivileged import let_read, let_write, start

COUNTING = """
import sys
from pathlib import Path
from palaver.archiver.store import Store

how, path = sys.argv[1:]
with getattr(Store, how)(Path(path)) as store:
    print(store.sessions.count(), flush=True)
    for _ in sys.stdin:
        print(store.sessions.count(), flush=True)
"""


@contextmanager
def writing(path: Path) -> Generator[Store]:
    """A store while it may be written; when this ends its folder may only be read."""
    let_write(path.parent)
    with Store.create(path) as store:
        yield store
        let_write(path.parent)
    let_read(path.parent)


def say(store: Store, name: str, count: int) -> None:
    with store.transaction():
        for number in range(count):
            store.sessions.save(Session("codex", f"{name}-{number}", title="x" * 300))


def counted(reader: Popen[str], *, ask: bool = True) -> int:
    assert reader.stdin is not None
    assert reader.stdout is not None
    if ask:
        print(file=reader.stdin, flush=True)
    return int(reader.stdout.readline())


@pytest.mark.parametrize("how", ["open", "open_read_only", "create"])
def test_what_its_owner_writes_is_read_at_once(tmp_path: Path, how: str) -> None:
    """Whether it still has its log, has none any more, or is another file by now."""
    path, other = tmp_path / "home" / "palaver.db", tmp_path / "other" / "palaver.db"
    for made, name, count in ((path, "first", 5), (other, "put-back", 3)):
        made.parent.mkdir()
        with writing(made) as store:
            say(store, name, count)

    with start(COUNTING, how, path) as reader:
        assert counted(reader, ask=False) == 5
        with writing(path) as store:
            say(store, "second", 495)
            let_read(path.parent)
            assert path.with_name("palaver.db-wal").stat().st_size
            assert counted(reader) == 500
            say(store, "third", 20)
            assert counted(reader) == 520
        assert counted(reader) == 520
        let_write(path.parent)
        for left in path.parent.glob("palaver.db-*"):
            left.unlink()
        shutil.copy2(other, path.with_name("new"))
        path.with_name("new").replace(path)
        let_read(path.parent)
        assert counted(reader) == 3
    assert reader.returncode == 0
    let_write(path.parent)


def test_what_changes_without_a_reader_seeing_its_log_is_read(path: Path) -> None:
    """Its owner wrote and closed it between two questions: no log is left of that, only another file."""
    with writing(path) as store:
        say(store, "first", 5)
    with start(COUNTING, "open", path) as reader:
        assert counted(reader, ask=False) == 5
        with writing(path) as store:
            say(store, "second", 495)
        assert not path.with_name("palaver.db-wal").exists()
        assert counted(reader) == 500
    let_write(path.parent)


def test_what_changes_while_it_is_read_is_read_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query that was made while the file changed is made anew of what is there then."""
    other = path.with_name("other.db")
    for made, count in ((path, 5), (other, 50)):
        with Store.create(made) as store:
            say(store, "one", count)

    def may_not(*_: object) -> bool:
        return False

    monkeypatch.setattr(os, "access", may_not)
    with Store.open(path) as store:
        read = store._database._read

        def disturbed(sql: str, values: tuple[str | bytes | int | float | None, ...]) -> list[tuple[object, ...]]:
            found = read(sql, values)
            if other.exists():
                other.replace(path)
            return [*found]

        store._database.__dict__["_read"] = disturbed
        assert store.sessions.count() == 50


def test_only_what_may_not_be_written_is_compared(path: Path) -> None:
    """Where this process may write SQLite sees every change by itself; where nothing is, nothing can have changed."""
    with Store.create(path):
        assert _UnwritableFile.at(path) is None
    assert _UnwritableFile.at(path.with_name("nothing.db")) is None
