"""Is what happens in a folder heard, and is it said where it may not be?"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.watch import events
from palaver.archiver.watch.events import FileEvents, Heard
from palaver.archiver.watch.scanning import Folder

DEADLINE = 120.0


def folder(path: Path) -> Folder:
    found = path.stat()
    return Folder(path, found.st_dev, found.st_ino)


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "_TICK", 0.2)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "followed").mkdir()
    return tmp_path / "followed"


@pytest.fixture
def ears(place: Path) -> Iterator[FileEvents]:
    """Events that listen already."""
    made = FileEvents()
    made.follow([folder(place)])
    assert made.wait() == Heard()
    yield made
    made.close()


def heard(ears: FileEvents) -> Heard:
    """The first thing that is heard."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if (found := ears.wait()) != Heard():
            return found
    raise AssertionError("nothing was heard")


def test_a_change_is_heard(ears: FileEvents, place: Path) -> None:
    """A file that is written is named, in folders too that others ignore."""
    path = place / "node_modules" / "file.jsonl"
    path.parent.mkdir()
    assert path.parent in heard(ears).paths

    end = time.monotonic() + DEADLINE
    found = Heard()
    while path not in found.paths:
        assert time.monotonic() < end
        path.write_text("one")  # the system's thread may begin to listen in a new folder after it was heard of
        found = ears.wait()
    assert not found.lost
    assert ears.deaf == ""


def test_a_name_that_is_no_text_is_survived(ears: FileEvents, place: Path) -> None:
    """The library breaks off at such a name: it is said that more may have changed, and listening begins anew."""
    path = os.fsencode(place) + b"/\xff.jsonl"
    with open(path, "wb"):  # noqa: PTH123 - a path of bytes
        pass

    assert heard(ears).lost
    assert "UTF-8" in ears.deaf or "decode" in ears.deaf
    assert heard(ears).lost  # between the two nothing was heard
    assert ears.deaf == ""
    (place / "next").touch()
    assert place / "next" in heard(ears).paths


def test_a_folder_that_vanished(place: Path) -> None:
    """Following what is no longer there is no error, and is tried less and less often."""
    now = [0.0]
    ears = FileEvents(clock=lambda: now[0])
    gone = folder(place)
    place.rmdir()
    ears.follow([gone])

    assert ears.wait().lost
    assert ears.deaf
    assert ears.wait() == Heard()
    now[0] += 1.5
    assert ears.wait().lost
    now[0] += 1.5
    assert ears.wait() == Heard()
    place.mkdir()
    now[0] += 10
    ears.wait()
    assert ears.deaf == ""
    ears.close()


def test_polling(place: Path) -> None:
    """Asked to poll, nothing is listened to, and it is said so."""
    ears = FileEvents(poll=True)
    ears.follow([folder(place)])
    (place / "file").touch()

    assert ears.wait() == Heard()
    assert ears.deaf == "asked to poll"


def test_a_silent_folder(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies on a network is not listened to, what lies beside it is."""
    other = tmp_path / "network"
    other.mkdir()

    def is_silent(path: Path) -> bool:
        return path == other

    monkeypatch.setattr(events, "is_silent", is_silent)
    ears = FileEvents()
    ears.follow([folder(place), folder(other)])
    assert ears.wait() == Heard()
    (other / "one").touch()
    (place / "two").touch()

    assert heard(ears).paths == {place / "two"}
    assert "tells nothing" in ears.deaf
    ears.close()


LIMITED = """
import sys
from pathlib import Path
from palaver.archiver.watch.events import FileEvents
from palaver.archiver.watch.scanning import Folder
Path("/proc/sys/user/max_inotify_watches").write_text("3")  # of this namespace alone
ears = FileEvents()
ears.follow([Folder(Path(sys.argv[1]), 0, 0)])
print(ears.wait().lost, ears.deaf)
"""


@pytest.mark.skipif(not shutil.which("unshare"), reason="limits are set in a namespace of its own")
def test_more_folders_than_the_system_allows(place: Path) -> None:
    """Where the system's limit is reached it is said that not everything is heard."""
    for number in range(5):
        (place / str(number)).mkdir()
    program = ["unshare", "--user", "--map-root-user", sys.executable, "-c", LIMITED, str(place)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "max_inotify_watches" in done.stderr:
        pytest.skip("this system gives no namespace with limits of its own")

    assert (done.stdout[:4], done.stderr) == ("True", "")
    assert "watch limit" in done.stdout
