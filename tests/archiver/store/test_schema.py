"""A database that lacks changes of the schema gets all of them or stays unchanged. Other versions are refused."""

# pyright: reportPrivateUsage=false

from pathlib import Path

import apsw
import pytest

from palaver.archiver.store import Store, database
from palaver.archiver.store.database import latest_version
from palaver.core.conversation import Session
from palaver.core.errors import StoreError, StoreFromFuture, StoreOutdated


def add_changes(monkeypatch: pytest.MonkeyPatch, folder: Path, *statements: str) -> None:
    """Add changes to the schema."""
    files = [folder / f"{number}.sql" for number, _ in enumerate(statements)]
    for file, sql in zip(files, statements, strict=True):
        file.write_text(sql)
    monkeypatch.setattr(database, "CHANGES", (*database.CHANGES, *files))


def version(path: Path) -> int:
    return int(apsw.Connection(str(path)).execute("PRAGMA user_version").get)


def test_a_new_archive_has_the_latest_schema(store: Store) -> None:
    """The file records the version of its schema."""
    assert store.schema == (latest_version(), latest_version())


def test_a_change_of_the_schema_is_applied_once(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening applies only the missing changes and keeps the content."""
    with Store.create(path) as store:
        store.sessions.save(Session("claude-code", "one"))
    before = latest_version()
    add_changes(monkeypatch, tmp_path, "CREATE TABLE added (id INTEGER PRIMARY KEY);")

    for _ in range(2):
        with Store.open(path) as store:
            assert store.schema == (before + 1, before + 1)
            assert store._database.number("SELECT count(*) FROM added") == 0
            assert store.sessions.count() == 1
    with Store.create(tmp_path / "new.db") as store:
        assert store.schema == (before + 1, before + 1)


def test_a_failing_change_changes_nothing(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If one change fails, all changes of the transaction are undone."""
    Store.create(path).close()
    before = latest_version()
    with monkeypatch.context() as patch:
        add_changes(patch, tmp_path, *["CREATE TABLE added (id INTEGER PRIMARY KEY);"] * 2)
        with pytest.raises(StoreError, match="already exists"):
            Store.open(path)

    with Store.open(path) as store:
        assert store.schema == (before, before)
        with pytest.raises(StoreError):
            store._database.rows("SELECT * FROM added")


def test_an_archive_of_a_newer_palaver_is_refused(path: Path) -> None:
    """`open` and `create` refuse a newer archive and suggest the upgrade command."""
    newer = latest_version() + 7
    with Store.create(path) as store:
        store._database.run(f"PRAGMA user_version = {newer}")
    for opened in (Store.open, Store.create):
        with pytest.raises(StoreFromFuture, match=f"schema {newer}") as refused:
            opened(path)
        assert "Upgrade Palaver" in refused.value.hint

    assert version(path) == newer


def test_an_archive_of_an_older_palaver_is_refused(path: Path) -> None:
    """Every way to open it names the command that converts it, and changes nothing."""
    with Store.create(path) as store:
        store._database.run("PRAGMA user_version = 51")
    for read_only in (False, True):
        for opened in (Store.open, Store.create):
            with pytest.raises(StoreOutdated, match="earlier version") as refused:
                opened(path, read_only=read_only)
            assert "palaver migrate" in refused.value.hint

    assert version(path) == 51
