"""An older archive is migrated completely or stays unchanged. A newer archive is refused."""

# pyright: reportPrivateUsage=false

from pathlib import Path

import apsw
import pytest

from palaver.archiver.store import Store, database
from palaver.archiver.store.database import MIGRATIONS
from palaver.core.conversation import Session
from palaver.core.errors import StoreError, StoreFromFuture

from ...search.history import History, Said, learned


def version(store: Store) -> int:
    return store._database.number("PRAGMA user_version")


def test_a_new_archive_has_every_migration(store: Store) -> None:
    """The file records the number of applied migrations."""
    assert version(store) == len(MIGRATIONS) > 0


def test_an_older_archive_is_migrated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening applies only the missing migrations and keeps the content."""
    with Store.create(path) as store:
        store.sessions.save(Session("claude-code", "one"))
    monkeypatch.setattr(database, "MIGRATIONS", [*MIGRATIONS, "CREATE TABLE added (id INTEGER PRIMARY KEY)"])

    with Store.open(path) as store:
        assert version(store) == len(MIGRATIONS) + 1
        assert store._database.number("SELECT count(*) FROM added") == 0
        assert store.sessions.count() == 1


def test_a_failing_migration_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If one migration fails, all migrations of the transaction are undone."""
    with Store.create(path):
        pass
    steps = [*MIGRATIONS, "CREATE TABLE added (id INTEGER PRIMARY KEY)", "CREATE TABLE added (id INTEGER PRIMARY KEY)"]
    with monkeypatch.context() as patch:
        patch.setattr(database, "MIGRATIONS", steps)
        with pytest.raises(StoreError, match="already exists"):
            Store.open(path)

    with Store.open(path) as store:
        assert version(store) == len(MIGRATIONS)
        with pytest.raises(StoreError):
            store._database.rows("SELECT * FROM added")


def test_an_archive_of_a_newer_palaver_is_refused(path: Path) -> None:
    """`open` and `create` refuse a newer archive and suggest the upgrade command."""
    with Store.create(path) as store:
        store._database.run(f"PRAGMA user_version = {len(MIGRATIONS) + 7}")
    for opened in (Store.open, Store.create):
        with pytest.raises(StoreFromFuture, match=f"schema {len(MIGRATIONS) + 7}") as newer:
            opened(path)
        assert "Upgrade Palaver" in newer.value.hint

    assert apsw.Connection(str(path)).execute("PRAGMA user_version").fetchall() == [(len(MIGRATIONS) + 7,)]


def test_an_archive_with_a_queue_of_requests_keeps_its_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tables of the former queue of model requests are dropped with their rows. Costs and observations remain."""
    [queue] = [place for place, step in enumerate(MIGRATIONS) if "DROP TABLE batch" in step]
    with monkeypatch.context() as patch:
        patch.setattr(database, "MIGRATIONS", MIGRATIONS[:queue])
        history = History(tmp_path)
        [key] = history.say("one", Said("Repair the pump.", "The pump is repaired."))
        run = history.store._database.run
        with history.store.transaction():
            history.store.observations.replace(key, 1, [learned("Pump repaired")], "llm:m:1")
            run("INSERT INTO batch (id, token, at, state) VALUES (1, 't', 5, 'sent')")
            run("INSERT INTO job (exchange, digest, state, due, batch) VALUES (?, 'd', 'sent', 0, 1)", (key,))
            run(
                """INSERT INTO call (run, at, model, reason, exchange, digest, batch, state, cost)
                   VALUES ('r', 5, 'm', 'backfill', ?, 'd', 1, 'reserved', 700)""",
                (key,),
            )
        history.store.close()

    with Store.open(tmp_path / "palaver.db") as store:
        names = {name for (name,) in store._database.rows("SELECT name FROM sqlite_master")}
        assert names.isdisjoint({"job", "batch", "job_state", "call_batch"})
        [row] = store.ledger.by_model()
        assert (row.model, row.reason, row.calls, row.unanswered, row.cost) == ("m", "backfill", 1, 1, 700)
        assert [each.observation.title for each in store.observations.of_exchange(key)] == ["Pump repaired"]
        with store.transaction():
            store.exchanges.delete([key])
        assert store.exchanges.load([key]) == {}
