"""Fixtures for tests of the Theo tools."""

from pathlib import Path

import pytest

from .client import Agent


@pytest.fixture
def theo(tmp_path: Path) -> Agent:
    """Return a client of a server over an empty home."""
    return Agent(tmp_path / "palaver")
