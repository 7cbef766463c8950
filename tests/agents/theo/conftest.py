"""Fixtures for tests of the Theo tools."""

from pathlib import Path

import pytest

from .talking import Talk


@pytest.fixture
def theo(tmp_path: Path) -> Talk:
    """Return a client of a server over an empty home."""
    return Talk(tmp_path / "palaver")
