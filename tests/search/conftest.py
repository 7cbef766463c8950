"""Fixtures for tests of search."""

from pathlib import Path

import pytest

from .history import History


@pytest.fixture
def history(tmp_path: Path) -> History:
    """Return an empty archive."""
    return History(tmp_path)
