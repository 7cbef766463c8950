"""Fixtures for tests of the Historian tools."""

from pathlib import Path

import pytest

from .talking import Talk


@pytest.fixture
def historian(tmp_path: Path) -> Talk:
    """Return a client of a server over an empty home and an empty project."""
    return Talk(tmp_path)
