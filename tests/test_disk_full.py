"""A full disk is reported, leaves no partial file, and causes no loss once space is free."""

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.core.home import Home
from palaver.observe.upkeep.consistency import check_consistency
from palaver.search.index.generation import Generations

from . import demo

PALAVER = [sys.executable, "-m", "palaver"]
SIZES = [0, 100, 1_000, 5_000, 20_000, 60_000, 120_000, 250_000]
"""Maximum file sizes in bytes, from zero to a limit that truncates only the largest files."""


FREE_BYTES = [100, 400, 700, 760, 780, 800, 830, 900, 1_100, 1_160, 1_200, 1_260]
"""Disk sizes in kilobytes, from too small for a database to slightly too small for an index."""
FILLED = """
mount -t tmpfs -o "size=$1k" none "$PALAVER_HOME" || exit 77
"$2" -m palaver archive "$3" >/dev/null
echo $?
find "$PALAVER_HOME/index" -name "new-*" 2>/dev/null
mount -o remount,size=100m "$PALAVER_HOME"
"$2" -m palaver archive "$3" >/dev/null 2>&1 && "$2" -m palaver fsck >/dev/null 2>&1
echo $?
"""
"""Program that archives on a small disk, prints status and unfinished files, and repeats this with more space."""


def limited(size: int, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a command with a maximum file size."""
    return subprocess.run(
        [*PALAVER, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PALAVER_HOME": str(home)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )


def assert_reported(done: subprocess.CompletedProcess[str]) -> None:
    """Check that a command exited with a report of the full disk, or without error."""
    assert done.returncode in {0, 1}, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode == 0 or "palaver:" in done.stderr or "Not read" in done.stdout, done


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("full")
    demo.archived(root)
    yield root
    shutil.rmtree(root)


@pytest.mark.parametrize("size", SIZES)
def test_first_ingest_run(pristine: Path, tmp_path: Path, size: int) -> None:
    """An ingest run on a full disk reports it, and the next run with space completes the archive."""
    home, projects = Home(tmp_path / "palaver"), pristine / "projects"

    assert_reported(limited(size, "archive", str(projects), home=home.root))
    if home.index.exists():
        Generations(home.index).current()
    done = limited(resource.RLIM_INFINITY, "archive", str(projects), home=home.root)

    assert done.returncode == 0, done.stderr
    assert check_consistency(home).problems == []
    assert not list(home.index.glob("new-*"))


@pytest.mark.skipif(not shutil.which("unshare"), reason="a disk of its own is made in a namespace of its own")
@pytest.mark.parametrize("free_bytes", FREE_BYTES)
def test_small_disk(pristine: Path, tmp_path: Path, free_bytes: int) -> None:
    """A full disk is reported and leaves no partial file. With more space the next run completes the archive."""
    home = tmp_path / "palaver"
    home.mkdir()
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", FILLED, "sh"]

    done = subprocess.run(
        [*inside, str(free_bytes), sys.executable, str(pristine / "projects")],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | {"PALAVER_HOME": str(home)},
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("this system gives no namespace with disks of its own")

    assert done.stdout.split() == ["1", "0"], done
    assert done.stderr.startswith("palaver:"), done.stderr
    assert "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("command", [("rebuild",), ("remember", "The kettle is brass.")], ids=lambda words: words[0])
@pytest.mark.parametrize("size", [1_000, 20_000])
def test_existing_data_stays(pristine: Path, tmp_path: Path, command: tuple[str, ...], size: int) -> None:
    """A command that runs out of space reports it and changes nothing."""
    home = Home(shutil.copytree(pristine / "palaver", tmp_path / "palaver"))
    before = Generations(home.index).name()

    failed = limited(size, *command, home=home.root)

    assert failed.returncode == 1
    assert_reported(failed)
    assert Generations(home.index).name() == before
    assert not list(home.index.glob("new-*"))
    assert limited(resource.RLIM_INFINITY, *command, home=home.root).returncode == 0
    assert check_consistency(home).ok


FULL = """
mount -t tmpfs -o size=4m none "$PALAVER_HOME" || exit 77
"$1" -m palaver remember "The kettle is brass." >/dev/null
dd if=/dev/zero of="$PALAVER_HOME/other" bs=1k 2>/dev/null
for words in "remember another" "search kettle" "recall kettle" status fsck "memories list"; do
    "$1" -m palaver $words 2>&1
    echo $?
done
PALAVER_READ_ONLY=1 "$1" -m palaver search kettle 2>&1
"""
"""Program that fills a small disk with another file, runs commands, and prints their messages and status."""


@pytest.mark.skipif(not shutil.which("unshare"), reason="a disk of its own is made in a namespace of its own")
def test_a_full_disk_is_named(tmp_path: Path) -> None:
    """Every command says that the disk is full, whatever SQLite reports. Read-only mode can still search."""
    home = tmp_path / "palaver"
    home.mkdir()
    inside = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", FULL, "sh", sys.executable]
    environment = os.environ | {"PALAVER_HOME": str(home)}
    done = subprocess.run(inside, check=False, capture_output=True, text=True, env=environment)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("this system gives no namespace with disks of its own")

    message = (
        f"palaver: {home / 'palaver.db'}: the disk is full\n"
        "Free some space, then try again. With PALAVER_READ_ONLY=1, you can search meanwhile.\n1\n"
    )
    assert done.stdout.startswith(message * 6), done.stdout
    assert "The kettle is brass." in done.stdout.removeprefix(message * 6)
