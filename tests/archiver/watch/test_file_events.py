"""File events report changed paths, and report if changes may be missed."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.watch import file_events
from palaver.archiver.watch.file_events import Changes, FileEvents, WatchedFolder

DEADLINE = 120.0


def folder(path: Path) -> WatchedFolder:
    found = path.stat()
    return WatchedFolder(path, found.st_dev, found.st_ino)


@pytest.fixture(autouse=True)
def _short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_events, "_WAIT", 0.2)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "followed").mkdir()
    return tmp_path / "followed"


@pytest.fixture
def events(place: Path) -> Iterator[FileEvents]:
    """Return a source of events that is already listening."""
    made = FileEvents()
    made.follow([folder(place)])
    assert made.wait() == Changes()
    yield made
    made.close()


def changes(events: FileEvents) -> Changes:
    """Return the first changes that are reported."""
    end = time.monotonic() + DEADLINE
    while time.monotonic() < end:
        if (found := events.wait()) != Changes():
            return found
    raise AssertionError("no change was reported")


def test_a_changed_file_is_reported(events: FileEvents, place: Path) -> None:
    """A changed file is reported, even in a folder that file watchers commonly ignore."""
    path = place / "node_modules" / "file.jsonl"
    path.parent.mkdir()
    assert path.parent in changes(events).paths

    end = time.monotonic() + DEADLINE
    found = Changes()
    while path not in found.paths:
        assert time.monotonic() < end
        path.write_text("one")  # listening in a new folder may begin after its event
        found = events.wait()
    assert not found.lost
    assert not events.may_miss_changes


def test_listening_resumes_after_a_name_that_is_not_utf8(
    events: FileEvents, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file name that is not UTF-8 ends listening: changes may be lost, and listening resumes after a minute."""
    path = os.fsencode(place) + b"/\xff.jsonl"
    with open(path, "wb"):  # noqa: PTH123 - a path of bytes
        pass

    assert changes(events).lost
    assert events.may_miss_changes
    monkeypatch.setattr(events, "_retry_at", 0.0)
    assert events.wait() == Changes()
    assert not events.may_miss_changes
    (place / "next").touch()
    assert place / "next" in changes(events).paths


def test_a_missing_folder_is_no_error(place: Path) -> None:
    """While a folder is missing, its changes may be missed. Listening is retried once a minute."""
    now = [0.0]
    events = FileEvents(clock=lambda: now[0])
    gone = folder(place)
    place.rmdir()
    events.follow([gone])

    assert events.wait().lost
    assert events.may_miss_changes
    place.mkdir()
    assert events.wait() == Changes()
    assert events.may_miss_changes
    now[0] += 61
    events.wait()
    assert not events.may_miss_changes
    events.close()


def test_polling_listens_to_nothing(place: Path) -> None:
    """With `poll`, no changes are reported, and the source reports that changes may be missed."""
    events = FileEvents(poll=True)
    events.follow([folder(place)])
    (place / "file").touch()

    assert events.wait() == Changes()
    assert events.may_miss_changes


def test_a_network_folder_is_not_listened_to(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes on a network file system may be missed. Changes in local folders are reported."""
    other = tmp_path / "network"
    other.mkdir()

    def is_network_mount(path: Path) -> bool:
        return path == other

    monkeypatch.setattr(file_events, "is_network_mount", is_network_mount)
    events = FileEvents()
    events.follow([folder(place), folder(other)])
    assert events.wait() == Changes()
    (other / "one").touch()
    (place / "two").touch()

    assert changes(events).paths == {place / "two"}
    assert events.may_miss_changes
    events.close()


LIMITED = """
import sys
from pathlib import Path
from palaver.archiver.watch.file_events import FileEvents
from palaver.archiver.watch.file_events import WatchedFolder
Path("/proc/sys/user/max_inotify_watches").write_text("3")  # applies to this namespace only
events = FileEvents()
events.follow([WatchedFolder(Path(sys.argv[1]), 0, 0)])
print(events.wait().lost, events.may_miss_changes)
"""


@pytest.mark.skipif(not shutil.which("unshare"), reason="limits are set in a namespace of its own")
def test_the_limit_of_the_system_causes_missed_changes(place: Path) -> None:
    """If the system's limit of watches is reached, changes are reported as lost."""
    for number in range(5):
        (place / str(number)).mkdir()
    program = ["unshare", "--user", "--map-root-user", sys.executable, "-c", LIMITED, str(place)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "max_inotify_watches" in done.stderr:
        pytest.skip("this system gives no namespace with limits of its own")

    assert (done.stdout, done.stderr) == ("True True\n", "")
