"""The wheel and the sdist contain every file and install one top-level name."""

import shutil
import stat
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
ENTRY = ROOT / "src" / "palaver"
FOLDERS = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"bench", "tests"}

SHIPPED = (
    {f"palaver/{path.relative_to(ENTRY).as_posix()}" for path in (*ENTRY.glob("*.*"), *ENTRY.glob("cli/*.py"))}
    | {
        f"palaver/{path.relative_to(ROOT).as_posix()}"
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    | {"palaver/.claude-plugin/marketplace.json"}
)


def build(kind: str, source: Path, into: Path) -> Path:
    """Build a distribution without build isolation and network."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (artefact,) = into.iterdir()
    return artefact


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel_from_sdist(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    return build("wheel", source, tmp_path_factory.mktemp("wheel-from-sdist"))


@pytest.fixture(params=["wheel", "wheel_from_sdist"])
def contents(request: pytest.FixtureRequest) -> Iterator[ZipFile]:
    with ZipFile(request.getfixturevalue(request.param)) as archive:
        yield archive


def test_wheel_installs_one_name(contents: ZipFile) -> None:
    """The wheel installs only `palaver` in site-packages."""
    top = {name.partition("/")[0] for name in contents.namelist()}

    assert {name for name in top if not name.endswith(".dist-info")} == {"palaver"}


def test_wheel_holds_every_file(contents: ZipFile) -> None:
    """The wheel contains every module, template and model file, and py.typed."""
    assert "palaver/py.typed" in SHIPPED
    assert {name for name in contents.namelist() if name.startswith("palaver/")} == SHIPPED


def test_wheel_holds_no_links(contents: ZipFile) -> None:
    """The wheel contains no links."""
    assert not [file.filename for file in contents.infolist() if stat.S_ISLNK(file.external_attr >> 16)]


def test_sdist_holds_no_links(sdist: Path) -> None:
    """The sdist contains no links."""
    with tarfile.open(sdist) as archive:
        assert not [file.name for file in archive if not file.isfile()]


@pytest.mark.parametrize("folder", sorted(FOLDERS))
def test_every_folder_is_packaged(folder: str) -> None:
    """Each root folder has its link, its path in the wheel, and an entry for pyright. A container is built from it."""
    tool: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    hatch = tool["hatch"]["build"]

    assert (ENTRY / folder).readlink() == Path("../..", folder)
    assert folder in hatch["only-include"]
    assert hatch["targets"]["wheel"]["sources"][folder] == f"palaver/{folder}"
    assert folder in tool["pyright"]["include"]
    assert f"!{folder}" in (ROOT / ".dockerignore").read_text("utf-8").split()


def requirements(name: str) -> list[Distribution]:
    """Return an installed distribution and the distributions that it requires, recursively."""
    found = dict[str, Distribution]()
    wanted = [(name, "")]
    for one, extra in wanted:
        found[one] = distribution(one)
        for requirement in map(Requirement, found[one].requires or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                wanted += {(requirement.name, extra) for extra in ("", *requirement.extras)}.difference(wanted)
    return list(found.values())


EVERYTHING = """
import importlib, pkgutil, palaver
for module in pkgutil.walk_packages(palaver.__path__, "palaver."):
    if not module.name.endswith("__main__") and not module.name.startswith("palaver.team.server."):
        importlib.import_module(module.name)
print(palaver.__file__)
"""


def test_wheel_runs_alone(wheel: Path, tmp_path: Path) -> None:
    """With only the declared requirements installed, the command runs and every module imports.

    Only the server of a team needs the extra `team`.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    (site,) = tmp_path.glob("lib/python*/site-packages")
    _, *theirs = requirements("palaver-archive")
    installed = Path(str(theirs[0].locate_file("")))
    for name in {file.parts[0] for found in theirs for file in found.files or []} - {"..", "__pycache__"}:
        (site / name).symlink_to(installed / name)
    python = str(tmp_path / "bin" / "python")
    install = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True)

    helped = subprocess.run([tmp_path / "bin" / "palaver", "--help"], capture_output=True, text=True, check=False)
    imported = subprocess.run([python, "-c", EVERYTHING], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (helped.returncode, helped.stderr) == (0, "")
    assert (imported.returncode, imported.stderr) == (0, "")
    assert Path(imported.stdout.strip()).is_relative_to(site)


def test_checkouts_named_palaver_pass_the_tests(tmp_path: Path) -> None:
    """In a checkout named `palaver`, tests import the shipped package, because they belong to no package themselves."""
    assert list((ROOT / "tests").rglob("__init__.py")) == []

    checkout = tmp_path / "palaver"
    (checkout / "tests").mkdir(parents=True)
    for name in ("__init__.py", "pyproject.toml"):
        shutil.copy(ROOT / name, checkout / name)
    (checkout / "tests" / "names.py").write_text("from palaver import __version__ as VERSION\n")
    (checkout / "tests" / "test_version.py").write_text(
        "from palaver.core.home import Home\n"
        "from .names import VERSION\n"
        "def test_version() -> None:\n"
        "    assert VERSION and Home\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    ran = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)

    assert "1 passed" in ran.stdout
