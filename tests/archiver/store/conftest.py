"""Fixtures for tests of the store."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.store import Store


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return the path of the test database."""
    return tmp_path / "palaver.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """Return an empty store."""
    with Store.create(path) as made:
        yield made
