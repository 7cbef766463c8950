"""A process can read a database that another user writes."""

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
    """Open a store for writing, then make its folder read-only."""
    let_write(path.parent)
    with Store.create(path) as store:
        yield store
        let_write(path.parent)
    let_read(path.parent)


def save_sessions(store: Store, name: str, count: int) -> None:
    with store.transaction():
        for number in range(count):
            store.sessions.save(Session("codex", f"{name}-{number}", title="x" * 300))


def count_sessions(reader: Popen[str], *, ask: bool = True) -> int:
    assert reader.stdin is not None
    assert reader.stdout is not None
    if ask:
        print(file=reader.stdin, flush=True)
    return int(reader.stdout.readline())


@pytest.mark.parametrize("how", ["open", "open_read_only", "create"])
def test_writes_of_the_owner_are_visible_at_once(tmp_path: Path, how: str) -> None:
    """A reader without write access sees writes at once: with a log file, without one, and if the file is replaced."""
    path, other = tmp_path / "home" / "palaver.db", tmp_path / "other" / "palaver.db"
    for made, name, count in ((path, "first", 5), (other, "put-back", 3)):
        made.parent.mkdir()
        with writing(made) as store:
            save_sessions(store, name, count)

    with start(COUNTING, how, path) as reader:
        assert count_sessions(reader, ask=False) == 5
        with writing(path) as store:
            save_sessions(store, "second", 495)
            let_read(path.parent)
            assert path.with_name("palaver.db-wal").stat().st_size
            assert count_sessions(reader) == 500
            save_sessions(store, "third", 20)
            assert count_sessions(reader) == 520
        assert count_sessions(reader) == 520
        let_write(path.parent)
        for left in path.parent.glob("palaver.db-*"):
            left.unlink()
        shutil.copy2(other, path.with_name("new"))
        path.with_name("new").replace(path)
        let_read(path.parent)
        assert count_sessions(reader) == 3
    assert reader.returncode == 0
    let_write(path.parent)


def test_a_change_between_two_queries_is_visible(path: Path) -> None:
    """A reader sees changes between two queries, even if the owner has closed the database and left no log file."""
    with writing(path) as store:
        save_sessions(store, "first", 5)
    with start(COUNTING, "open", path) as reader:
        assert count_sessions(reader, ask=False) == 5
        with writing(path) as store:
            save_sessions(store, "second", 495)
        assert not path.with_name("palaver.db-wal").exists()
        assert count_sessions(reader) == 500
    let_write(path.parent)


def test_a_query_is_repeated_if_the_file_changes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the database file is replaced during a query, the query runs again on the new file."""
    other = path.with_name("other.db")
    for made, count in ((path, 5), (other, 50)):
        with Store.create(made) as store:
            save_sessions(store, "one", count)

    def deny(*_: object) -> bool:
        return False

    monkeypatch.setattr(os, "access", deny)
    with Store.open(path) as store:
        read = store._database._read

        def replacing(sql: str, values: tuple[str | bytes | int | float | None, ...]) -> list[tuple[object, ...]]:
            found = read(sql, values)
            if other.exists():
                other.replace(path)
            return [*found]

        store._database.__dict__["_read"] = replacing
        assert store.sessions.count() == 50


def test_only_unwritable_files_are_compared(path: Path) -> None:
    """File states are compared only in unwritable folders. Elsewhere SQLite detects changes itself."""
    with Store.create(path):
        assert _UnwritableFile.at(path) is None
    assert _UnwritableFile.at(path.with_name("nothing.db")) is None
