"""What does every test of the memory core get?"""

from pathlib import Path

import pytest

from .holding import Holding


@pytest.fixture
def holding(tmp_path: Path) -> Holding:
    """An empty core."""
    return Holding(tmp_path)
