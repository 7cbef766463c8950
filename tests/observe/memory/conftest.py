"""What does every test of the memory core get?"""

from pathlib import Path

import pytest

from palaver.search.model.embedder import load

from .holding import Holding


@pytest.fixture
def holding(tmp_path: Path) -> Holding:
    """An empty core."""
    return Holding(tmp_path)


@pytest.fixture
def real(tmp_path: Path) -> Holding:
    """An empty core whose cosines are those of the packaged model."""
    return Holding(tmp_path, load())
