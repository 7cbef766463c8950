"""Deletions of an earlier version are the same after the conversion of its database."""

from pathlib import Path

import pytest

from palaver.archiver.store import Store
from palaver.archiver.store.migration import migrate, old_databases
from palaver.core.deletion import DeletionRequest
from palaver.core.errors import StoreOutdated
from palaver.core.home import Home
from palaver.observe.deletion.deleter import Deleter

from ...old_version import downgrade
from .test_deleter import GONE, archive, canary_home, deleted, root
from .test_undo import rows

__all__ = ["canary_home", "root"]  # fixtures


def deletions(home: Home) -> list[object]:
    with Store.open(home.database) as store:
        return [store.tombstones.in_sync, *store.tombstones.all()]


def kept(home: Home) -> dict[str, set[tuple[object, ...]]]:
    """Return the rows, without the model of the vectors of exchanges, which are embedded again."""
    tables = rows(home)
    return tables | {"item": {(*row[:4], None) if row[1] == "exchange" else row for row in tables["item"]}}


@pytest.mark.parametrize("erase", [False, True])
def test_deleted_content_stays_deleted(root: Path, erase: bool) -> None:
    """The list of deletions, all other rows and the effect on the same transcripts are unchanged."""
    home = Home(root / "home")
    deleted(home, DeletionRequest((GONE,), erase=erase))
    before, listed = kept(home), deletions(home)
    downgrade(home.database)
    with pytest.raises(StoreOutdated):
        Store.open(home.database)
    migrate(home)

    assert (kept(home), deletions(home)) == (before, listed)
    archive(root, home)
    assert rows(home)["exchange"] == before["exchange"]
    assert deletions(home) == listed


def test_a_deletion_can_be_undone_after_the_conversion(root: Path) -> None:
    """Undo restores exchanges, observations and vectors with their IDs from the packed rows of the old schema."""
    home = Home(root / "home")
    before = kept(home)
    number = deleted(home, DeletionRequest((GONE,))).number or 0
    downgrade(home.database)
    migrate(home)
    with Deleter(home) as deleter:
        deleter.undo(number)

    assert kept(home) == before


def test_an_erasure_removes_the_old_database(root: Path) -> None:
    """The old database contains erased text, so it is deleted with the backups."""
    home = Home(root / "home")
    downgrade(home.database)
    migrate(home)
    assert len(old_databases(home)) == 1
    deleted(home, DeletionRequest((GONE,), erase=True))

    assert old_databases(home) == ()
