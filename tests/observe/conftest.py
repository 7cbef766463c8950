"""Fixtures for tests of observation extraction."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..archiver.history import History, talk


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """Archive with one session that has no observations yet."""
    with History(tmp_path) as made:
        made.write(talk("first"))
        made.ingest()
        yield made
