"""Tests of core/home.py: commands that install into the environment of Palaver."""

import shlex
import sys
from importlib.metadata import version
from importlib.util import find_spec

import pytest

from palaver import __version__
from palaver.core import home
from palaver.core.home import DISTRIBUTION, extra_command, install_command, upgrade_hint


def test_extra_is_installed_by_this_interpreter() -> None:
    """The command runs pip with this interpreter and contains the distribution with its extra."""
    assert shlex.split(extra_command("models")) == [sys.executable, "-m", "pip", "install", f"{DISTRIBUTION}[models]"]


def test_environment_without_pip_uses_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an environment without pip, the command uses uv."""

    def find_no_pip(name: str) -> object:
        return None if name == "pip" else find_spec(name)

    monkeypatch.setattr(home, "find_spec", find_no_pip)

    assert extra_command("models").startswith(f"uv pip install --python {shlex.quote(sys.executable)} ")


def test_library_is_upgraded_in_this_environment() -> None:
    """An upgrade command adds `--upgrade`."""
    expected = [sys.executable, "-m", "pip", "install", "--upgrade", "apsw"]
    assert shlex.split(install_command("apsw", upgrade=True)) == expected


def test_upgrade_hint_contains_the_distribution() -> None:
    """The upgrade hint contains the distribution name, not the import name."""
    assert f"install --upgrade {DISTRIBUTION}`" in upgrade_hint()


def test_distribution_is_installed_under_its_name() -> None:
    """The name in the commands is the name that pip installed."""
    assert version(DISTRIBUTION) == __version__
