"""Fixture for archives of shell commands."""

from pathlib import Path

import pytest

from .shell_history import ShellHistory


@pytest.fixture
def shell(tmp_path: Path, home: Path) -> ShellHistory:
    """Return a builder of sessions in an empty archive."""
    return ShellHistory(tmp_path, home / "palaver")
