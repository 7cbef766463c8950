"""Does a command that is told to add something add it to the environment that tells it?"""

import json
import shlex
import sys
from importlib.metadata import Distribution, PackageNotFoundError
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from palaver.core import installation
from palaver.core.installation import adding, renewing, upgrading


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


def test_the_newest_of_a_library_comes_into_this_environment() -> None:
    """It is this interpreter that needs it."""
    assert shlex.split(upgrading("apsw")) == [sys.executable, "-m", "pip", "install", "--upgrade", "apsw"]


class Installed(Distribution):
    """Palaver as pip says that it was installed."""

    def __init__(self, **told: object) -> None:
        self._told = json.dumps(told)

    def read_text(self, filename: str) -> str | None:
        return self._told if filename == "direct_url.json" else None

    def locate_file(self, path: object) -> Path:
        raise AssertionError(path)


@pytest.mark.parametrize(("editable", "option"), [(True, "-e "), (False, "")])
def test_who_installed_from_a_checkout_is_told_to_do_so_again(
    editable: bool, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an index has under our name is another thing."""
    found = Installed(url="file:///code/my%20palaver", dir_info={"editable": editable} if editable else {})

    def installed(_: str) -> Distribution:
        return found

    monkeypatch.setattr(installation, "distribution", installed)

    command = f"{shlex.quote(sys.executable)} -m pip install {option}'/code/my palaver'"
    assert renewing() == f"Install the newer Palaver again: bring /code/my palaver up to date, then run `{command}`."


def test_who_installed_otherwise_knows_how(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file, an address, or nothing at all: which newer one there is, is not guessed."""

    def downloaded(_: str) -> Distribution:
        return Installed(url="https://a/b.whl", archive_info={})

    def unknown(name: str) -> Distribution:
        raise PackageNotFoundError(name)

    for found in (downloaded, unknown):
        monkeypatch.setattr(installation, "distribution", found)
        assert renewing() == "Install the newer Palaver again, as you installed this one."
