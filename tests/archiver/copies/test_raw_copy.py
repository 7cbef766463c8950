"""A copy has two storage formats, and every byte exists at every moment of a change between them."""

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from palaver.archiver.copies import raw_copy as copies
from palaver.archiver.copies.compressed_file import FRAME, CompressedFile
from palaver.archiver.copies.raw_copy import COMPRESSED_SUFFIX, UNFINISHED, Copy
from palaver.core.errors import CopyDamaged

from ... import fuse

WORKER = "tests.archiver.copies.compression_worker"
NAME = "agent/shop/one.jsonl"
DATA = b"".join(b'{"line": %d, "text": "%d"}\n' % (line, line * line) for line in range(30_000))


def written(root: Path, data: bytes = DATA) -> Copy:
    copy = Copy(root, NAME)
    copy.path.parent.mkdir(parents=True, exist_ok=True)
    copy.path.write_bytes(data)
    return copy


def content(copy: Copy) -> bytes:
    with copy.open() as file:
        return file.read()


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("data", [b"", b"one", DATA], ids=["empty", "short", "long"])
def test_compression_and_decompression(tmp_path: Path, data: bytes) -> None:
    """In both formats, a copy has the same bytes and size, and only its owner can read it."""
    copy = written(tmp_path, data)

    before, after = copy.compress()
    assert (before, after) == (len(data), copy.compressed_path.stat().st_size)
    assert files(tmp_path) == {NAME + COMPRESSED_SUFFIX}
    assert (content(copy), copy.size()) == (data, len(data))
    assert copy.compressed_path.stat().st_mode & 0o077 == 0

    copy.decompress()
    assert files(tmp_path) == {NAME}
    assert (content(copy), copy.size()) == (data, len(data))
    assert copy.path.stat().st_mode & 0o077 == 0


def test_a_missing_copy(tmp_path: Path) -> None:
    """A missing copy is empty, and no operation creates it."""
    copy = Copy(tmp_path, NAME)

    assert copy.size() == 0
    copy.decompress()
    with pytest.raises(FileNotFoundError):
        copy.open()


def test_an_open_file_outlives_a_change_of_format(tmp_path: Path) -> None:
    """A reader keeps its file while the format changes."""
    copy = written(tmp_path)
    with copy.open() as uncompressed:
        uncompressed.read(100)
        copy.compress()
        with copy.open() as compressed:
            compressed.read(100)
            copy.decompress()
            assert compressed.read() == uncompressed.read() == DATA[100:]


def test_a_copy_is_found_while_its_format_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that is decompressed at the moment of opening is not missing."""
    copy = written(tmp_path)
    copy.compress()

    def late(path: Path) -> CompressedFile:
        monkeypatch.setattr(copies, "CompressedFile", CompressedFile)
        copy.decompress()
        return CompressedFile(path)

    monkeypatch.setattr(copies, "CompressedFile", late)
    assert content(copy) == DATA
    assert copy.path.exists()


@pytest.mark.parametrize("place", [10, -3])
def test_a_compressed_file_that_reads_back_differently_is_discarded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int
) -> None:
    """A faulty disk costs no byte: the uncompressed file stays."""
    copy, sync = written(tmp_path), os.fsync

    def garble(descriptor: int) -> None:
        sync(descriptor)
        path = next((tmp_path / UNFINISHED).iterdir(), None)
        if path is not None:
            data = bytearray(path.read_bytes())
            data[place] ^= 1
            path.write_bytes(data)

    monkeypatch.setattr(os, "fsync", garble)
    with pytest.raises(CopyDamaged):
        copy.compress()
    assert files(tmp_path) == {NAME}
    assert content(copy) == DATA


def test_a_damaged_compressed_file_is_not_decompressed(tmp_path: Path) -> None:
    """A file with lost content stays as it is."""
    copy = written(tmp_path)
    copy.compress()
    data = bytearray(copy.compressed_path.read_bytes())
    data[200] ^= 1
    copy.compressed_path.write_bytes(data)

    with pytest.raises(CopyDamaged, match=f"bytes 0-{FRAME - 1} of the content"):
        copy.decompress()
    assert files(tmp_path) == {NAME + COMPRESSED_SUFFIX}


@pytest.mark.parametrize("work", ["compress", "decompress"])
def test_a_copy_survives_a_kill_at_any_moment(tmp_path: Path, work: str) -> None:
    """A process killed before any change of the disk loses no byte; the next one completes the work."""
    changes = fuse.steps(run(work, tmp_path / "calm", 0))
    assert changes >= 6
    root = tmp_path / "killed"
    for point in range(1, changes + 1):
        fuse.kill(partial(run, work, root), point)
        copy = Copy(root, NAME)
        assert content(copy) == DATA
        assert copy.size() == len(DATA)

        if copy.path.exists():
            copy.compress()
        assert content(copy) == DATA
        copy.decompress()
        assert files(root) - {name for name in files(root) if name.startswith(UNFINISHED)} == {NAME}
        assert content(copy) == DATA


def run(work: str, root: Path, at: int) -> subprocess.CompletedProcess[str]:
    """Run a process that compresses a copy, or decompresses a compressed one."""
    shutil.rmtree(root, ignore_errors=True)
    copy = written(root)
    if work == "decompress":
        copy.compress()
    return fuse.run(WORKER, work, root, NAME, at)
