"""Fixtures for tests of the archiver."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from .history import History


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """Archive without transcripts."""
    with History(tmp_path) as made:
        yield made
