"""File systems that send no change events are detected."""

import sys
from pathlib import Path

import pytest

from palaver.archiver.watch import file_events
from palaver.archiver.watch.file_events import is_network_mount

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the types of mounted file systems")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder and a mount table with several file systems below it."""
    spaced = str(tmp_path / "with space").replace(" ", "\\040")
    rows = [
        "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
        f"2 1 0:1 / {tmp_path}/net rw - nfs4 server:/home rw",
        f"3 1 0:2 / {tmp_path}/net/inner rw shared:3 master:1 - ext4 /dev/sdb1 rw",
        f"4 1 0:3 / {spaced} rw - fuse.sshfs host: rw",
        f"5 1 0:4 / {tmp_path}/twice rw - ext4 /dev/sdc1 rw",
        f"6 5 0:5 / {tmp_path}/twice rw - 9p share rw",
        f"7 1 0:6 / {tmp_path}/usb rw - fuseblk /dev/sdd1 rw",
        "a line in an unknown format",
    ]
    table = tmp_path / "mountinfo"
    table.write_text("\n".join(rows))
    monkeypatch.setattr(file_events, "_MOUNTS", table)
    return tmp_path


@pytest.mark.parametrize(
    ("folder", "without_events"),
    [
        ("", False),
        ("net", True),
        ("net/deep/down", True),
        ("network", False),
        ("net/inner/deep", False),
        ("with space/folder", True),
        ("twice", True),
        ("usb", False),
    ],
)
def test_the_innermost_mount_decides(place: Path, folder: str, without_events: bool) -> None:
    """Network and FUSE file systems send no events. The innermost mount, mounted last, determines the type."""
    assert is_network_mount(place / folder) is without_events


def test_a_link_is_followed(place: Path) -> None:
    """A path behind a link belongs to the file system of the link's target."""
    (place / "link").symlink_to(place / "net")

    assert is_network_mount(place / "link" / "folder")


def test_without_a_table_events_are_trusted(place: Path) -> None:
    """Without a mount table, every file system is expected to send events."""
    (place / "mountinfo").unlink()

    assert not is_network_mount(place / "net")
