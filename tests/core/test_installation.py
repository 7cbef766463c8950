"""Does a command that is told to add something add it to the environment that tells it?"""

import shlex
import sys
from importlib.metadata import PackageNotFoundError
from importlib.util import find_spec

import pytest
from packaging.requirements import Requirement

from palaver.core import installation
from palaver.core.installation import adding


def test_what_an_extra_needs_is_named_for_this_interpreter() -> None:
    """The words of the command, as a shell reads them, are this Python's pip and what pyproject.toml says."""
    *installer, needed = shlex.split(adding("models"))

    assert installer == [sys.executable, "-m", "pip", "install"]
    assert (Requirement(needed).name, "7" in str(Requirement(needed).specifier)) == ("sentence-transformers", True)


def test_an_environment_without_pip_is_told_of_uv(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that uv makes have no pip; it installs into them from outside."""

    def no_pip(name: str) -> object:
        return None if name == "pip" else find_spec(name)

    monkeypatch.setattr(installation, "find_spec", no_pip)

    assert adding("models").startswith(f"uv pip install --python {shlex.quote(sys.executable)} ")


def test_a_folder_that_was_never_installed_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody knows what the extra needs, its name is what is left to say."""

    def unknown(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(installation, "requires", unknown)

    assert adding("models").endswith(" 'palaver[models]'")
