"""Fixtures: a database for each module, and a running server on it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.team.server.database import TeamDatabase
from palaver.team.server.raw_store import RawStore

from .members import serving
from .postgres import DatabaseUrls, database


@pytest.fixture(scope="module")
def urls() -> Iterator[DatabaseUrls]:
    """URLs of a database with the schema."""
    with database() as found:
        yield found


@pytest.fixture(scope="module")
def pool(urls: DatabaseUrls) -> Iterator[TeamDatabase]:
    """Connections of the server: one only, so that each test would see settings that leak."""
    connections = TeamDatabase(urls.app, size=1)
    yield connections
    connections.close()


@pytest.fixture(scope="module")
def raw_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder with a store of full copies, and its key."""
    return tmp_path_factory.mktemp("raw")


@pytest.fixture(scope="module")
def raw_store(raw_folder: Path) -> RawStore:
    """Store of full copies in a folder."""
    return RawStore.opened(str(raw_folder / "store"), raw_folder / "raw.key")[0]


@pytest.fixture(scope="module")
def url(pool: TeamDatabase, raw_store: RawStore) -> Iterator[str]:
    """URL of a running server."""
    with serving(pool, raw_store=raw_store) as address:
        yield address
