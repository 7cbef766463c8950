"""A copy has two storage formats, and each byte stays readable while the format changes."""

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

import pytest

from palaver.archiver.copies import raw_copy as copies
from palaver.archiver.copies.raw_copy import COMPRESSED_SUFFIX, UNFINISHED, Copy
from palaver.archiver.copies.storage_formats import FRAME, CompressedFile
from palaver.core.errors import CopyDamaged

from ... import crash_injection

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
def test_both_formats_have_the_same_content(tmp_path: Path, data: bytes) -> None:
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


def test_a_missing_copy_is_empty(tmp_path: Path) -> None:
    """A missing copy has size 0, and no operation creates it."""
    copy = Copy(tmp_path, NAME)

    assert copy.size() == 0
    copy.decompress()
    with pytest.raises(FileNotFoundError):
        copy.open()


def test_an_open_file_remains_readable_after_a_format_change(tmp_path: Path) -> None:
    """An open copy remains readable while its format changes."""
    copy = written(tmp_path)
    with copy.open() as uncompressed:
        uncompressed.read(100)
        copy.compress()
        with copy.open() as compressed:
            compressed.read(100)
            copy.decompress()
            assert compressed.read() == uncompressed.read() == DATA[100:]


def test_a_copy_is_found_while_its_format_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening succeeds if the copy is decompressed at the same moment."""
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
    """A compressed file that does not restore the original bytes is discarded."""
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
    """A compressed file with lost content stays unchanged."""
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
    """If a process is killed before any disk change, no byte is lost, and the next process completes the change."""
    changes = crash_injection.steps(run(work, tmp_path / "calm", 0))
    assert changes >= 6
    root = tmp_path / "killed"
    for point in range(1, changes + 1):
        crash_injection.kill(partial(run, work, root), point)
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
    """Run a process that compresses a copy or decompresses a compressed copy."""
    shutil.rmtree(root, ignore_errors=True)
    copy = written(root)
    if work == "decompress":
        copy.compress()
    return crash_injection.run(WORKER, work, root, NAME, at)
