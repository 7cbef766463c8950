"""Fixtures with empty memories."""

from pathlib import Path

import pytest

from palaver.search.model.embedder import load

from .memory_harness import Harness


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    """Return empty memories."""
    return Harness(tmp_path)


@pytest.fixture
def real(tmp_path: Path) -> Harness:
    """Return empty memories with the packaged model."""
    return Harness(tmp_path, load())
