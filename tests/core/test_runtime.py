"""Tests of `runtime.py`."""

import os
from pathlib import Path

import pytest

from palaver.core.runtime import (
    Closing,
    Progress,
    Reporter,
    replacing,
    silent,
    sync,
    sync_path,
    with_checksum,
    without_checksum,
)

# Tests of core/resources.py: a resource in a `with` block is closed at the end of the block.


class Resource(Closing):
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_resource_is_closed_once_at_the_end() -> None:
    """The resource is open inside the block, and is closed exactly once at its end."""
    with Resource() as resource:
        assert resource.closed == 0

    assert resource.closed == 1


def test_resource_is_closed_after_an_error() -> None:
    """If the block raises an error, the resource is closed and the error is raised."""
    resource = Resource()
    with pytest.raises(ValueError, match="broken"), resource:
        raise ValueError("broken")

    assert resource.closed == 1


# Tests of core/runtime.py.


def test_silent_fits_both_callback_types() -> None:
    """`silent` can be called as `Progress` and as `Reporter`."""
    progress: Progress = silent
    reporter: Reporter = silent

    progress(1, 2)
    reporter("Archiving", 1, 2)


# Tests of core/resources.py.


def test_buffered_bytes_are_synced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Syncing a file also writes its buffered bytes."""
    path, synced = tmp_path / "copy", list[bytes]()

    def record(descriptor: int) -> None:
        synced.append(path.read_bytes())
        assert os.path.samestat(os.fstat(descriptor), path.stat())

    monkeypatch.setattr(os, "fsync", record)
    with path.open("wb") as file:
        file.write(b"said")
        sync(file)

    assert synced == [b"said"]


@pytest.mark.parametrize("name", ["", "copy"])
def test_path_is_synced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    """A folder is synced like a file, and no file stays open."""
    (tmp_path / "copy").write_bytes(b"said")
    path, synced = tmp_path / name, list[int]()

    def record(descriptor: int) -> None:
        synced.append(descriptor)
        assert os.path.samestat(os.fstat(descriptor), path.stat())

    monkeypatch.setattr(os, "fsync", record)
    sync_path(path)

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(synced[0])


def test_file_is_replaced_at_once(tmp_path: Path) -> None:
    """The old file stays until the new file is complete and readable only by its owner."""
    path = tmp_path / "told"
    path.write_bytes(b"before")
    with replacing(path) as file:
        file.write(b"after")
        assert path.read_bytes() == b"before"

    assert path.read_bytes() == b"after"
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_failed_write_replaces_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A failed write keeps the old file and leaves no other file."""
    path = tmp_path / "told"
    path.write_bytes(b"before")

    def refuse(_: int) -> None:
        raise OSError("full")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="full"), replacing(path) as file:
        file.write(b"after")

    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_damaged_line_is_detected() -> None:
    """A line with a wrong checksum is not returned."""
    line = with_checksum(b"palaver 12")
    assert without_checksum(line) == b"palaver 12"
    for bit in range(8 * len(line)):
        damaged = bytearray(line)
        damaged[bit // 8] ^= 1 << bit % 8
        assert without_checksum(bytes(damaged)) in {None, b"palaver 12"}
    assert {without_checksum(line[:end]) for end in range(len(line) - 1)} == {None}
