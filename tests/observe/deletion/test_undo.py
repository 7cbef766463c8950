"""Undo restores deleted content."""

from pathlib import Path

import pytest

from palaver.archiver.store import Store
from palaver.core.deletion import DeletionRequest
from palaver.core.home import Home
from palaver.core.observation import Observation, ObservationType
from palaver.core.query import Query
from palaver.observe.deletion.deleter import Deleter
from palaver.observe.deletion.erasure import scan
from palaver.search.archive_search import ArchiveSearch

from .test_deleter import GONE, KEPT, canary_home, deleted, root

__all__ = ["canary_home", "root"]  # fixtures

TABLES = ("item", "exchange", "observation", "summary", "vector", "token", "edited_file", "confirmation")


def rows(home: Home) -> dict[str, set[tuple[object, ...]]]:
    """Return every row of exchanges and observations, by table."""
    with Store.open(home.database) as store:
        return {table: set(store._database.rows(f"SELECT * FROM {table}")) for table in TABLES}  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize(
    "wanted", [DeletionRequest((GONE,)), DeletionRequest(mentions="order 1"), DeletionRequest(mentions="order")]
)
def test_undo_restores_every_row_at_once(root: Path, wanted: DeletionRequest) -> None:
    """Undo restores exchanges, observations and vectors with their IDs, without another ingest run."""
    home = Home(root / "home")
    before = rows(home)
    number = deleted(home, wanted).number or 0
    assert rows(home) != before
    with Deleter(home) as deleter:
        undone = deleter.undo(number)

    assert rows(home) == before
    assert undone.unobserved == 0
    with Store.open(home.database) as store:
        assert list(store.deleted_rows.texts()) == []


def test_a_restored_session_is_found_at_once(root: Path) -> None:
    """Search finds a restored observation before any other command runs."""
    home = Home(root / "home")
    number = deleted(home, DeletionRequest((GONE,))).number or 0
    with Deleter(home) as deleter:
        deleter.undo(number)
    with ArchiveSearch(home) as layers:
        assert "LearnedCanary" in str(layers.find(Query.parse("LearnedCanary")).hits)


def test_undo_does_not_restore_what_a_later_deletion_removed(root: Path) -> None:
    """After undoing a deletion, no table contains the content of a later deletion."""
    home = Home(root / "home")
    first = deleted(home, DeletionRequest(mentions="order 1")).number or 0
    deleted(home, DeletionRequest(mentions="order 2"))
    with Deleter(home) as deleter:
        deleter.undo(first)
    texts = {table: str(found) for table, found in rows(home).items()}
    assert "order 1" in texts["exchange"]
    assert not [table for table, text in texts.items() if "order 2" in text]


@pytest.mark.parametrize(
    "wanted", [DeletionRequest((GONE,), erase=True), DeletionRequest(mentions="PromptCanary", erase=True)]
)
def test_an_erasure_removes_rows_kept_for_undo(root: Path, wanted: DeletionRequest) -> None:
    """An erasure also removes rows that an earlier deletion of the same content kept for its undo."""
    home = Home(root / "home")
    deleted(home, DeletionRequest((GONE,)))
    outcome = deleted(home, wanted)
    assert outcome.check is not None
    assert outcome.check.found == []
    assert scan(home.root, ["LearnedCanary", "PromptCanary"]).found == []


@pytest.mark.parametrize("later", [False, True])
def test_no_summary_outlives_the_exchanges_it_quotes(root: Path, *, later: bool) -> None:
    """Undo does not restore a summary that quotes erased exchanges."""
    home = Home(root / "home")
    with Store.open(home.database) as store, store.transaction():
        outlines = store.exchanges.outlines()
        [session] = {each.session for each in outlines if store.sessions.load(each.session).native_id == KEPT}
        anchor = next(each.key for each in outlines if each.session == session)
        summary = Observation(ObservationType.GENERAL, "Session: orders", "", "It began with order 0", (), (), (), ())
        store.summaries.put(session, anchor, summary)
    first = deleted(home, DeletionRequest(mentions="order 1")).number or 0
    if later:
        second = deleted(home, DeletionRequest(mentions="order 0")).number or 0
        with Deleter(home) as deleter:
            assert deleter.erase(second).done
    else:
        deleted(home, DeletionRequest(mentions="order 0", erase=True))
    assert scan(home.root, ["order 0"]).found == []
    with Deleter(home) as deleter:
        deleter.undo(first)
    assert scan(home.root, ["order 0"]).found == []
    assert "order 1" in str(rows(home)["exchange"])
