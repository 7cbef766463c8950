"""Fixtures with empty memories."""

from pathlib import Path

import pytest

from palaver.search.model.embedder import load

from .holding import Holding


@pytest.fixture
def holding(tmp_path: Path) -> Holding:
    """Return empty memories."""
    return Holding(tmp_path)


@pytest.fixture
def real(tmp_path: Path) -> Holding:
    """Return empty memories with the packaged model."""
    return Holding(tmp_path, load())
