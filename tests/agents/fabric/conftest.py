"""Fixtures for tests of the fabric tools."""

from pathlib import Path

import pytest

from .client import Agent


@pytest.fixture
def fabric(tmp_path: Path) -> Agent:
    """Return a client of a server over an empty home and an empty project."""
    return Agent(tmp_path)
