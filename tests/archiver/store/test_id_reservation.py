"""An issued ID is never issued again, even by a restored database."""

import shutil
from pathlib import Path

import pytest

from palaver.archiver.store import Store
from palaver.core.home import Home

from .sample_values import exchange, store_session


def give(path: Path, name: str, count: int) -> set[int]:
    """Archive `count` exchanges and return their IDs."""
    with Store.open(path) as store:
        before = set(store.items.all_keys())
        with store.transaction():
            session, source = store_session(store, name)
            store.exchanges.replace(session, source, 0, [exchange(number, "a") for number in range(count)])
        return set(store.items.all_keys()) - before


@pytest.fixture
def home(path: Path) -> Home:
    """Return a home with raw copies and an empty database."""
    made = Home(path.parent)
    made.archive.mkdir()
    Store.create(path).close()
    return made


def test_a_restored_database_issues_other_ids(home: Home, path: Path) -> None:
    """A restored backup skips all possible IDs of the lost database once, then continues without gaps."""
    give(path, "yesterday", 5)
    shutil.copy2(path, path.with_name("backup"))
    lost = give(path, "today", 1_500)
    ceiling = int(home.numbers.read_bytes().split()[1])
    path.with_name("backup").replace(path)

    again = give(path, "today", 3)
    assert again.isdisjoint(lost)
    assert again == {ceiling + 1, ceiling + 2, ceiling + 3}
    assert give(path, "later", 1) == {ceiling + 4}


def test_ids_have_no_needless_gaps(home: Home, path: Path) -> None:
    """A current database continues with the next ID, however often it is opened."""
    given = [min(give(path, f"s{number}", 1)) for number in range(3)]

    assert given == [1, 2, 3]
    assert int(home.numbers.read_bytes().split()[1]) == 1_001
