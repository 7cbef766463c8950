"""Copies: two forms of one file, and no moment at which a byte of it is nowhere."""

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
def test_there_and_back(tmp_path: Path, data: bytes) -> None:
    """Sealed or plain, it is one file with the same bytes and the same size, closed to others."""
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


def test_a_copy_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    """Nothing is made of nothing."""
    copy = Copy(tmp_path, NAME)

    assert copy.size() == 0
    copy.decompress()
    with pytest.raises(FileNotFoundError):
        copy.open()


def test_who_reads_goes_on_reading(tmp_path: Path) -> None:
    """A reader keeps what it opened while the form changes under it."""
    copy = written(tmp_path)
    with copy.open() as plain:
        plain.read(100)
        copy.compress()
        with copy.open() as sealed:
            sealed.read(100)
            copy.decompress()
            assert sealed.read() == plain.read() == DATA[100:]


def test_a_form_that_comes_between_two_looks_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that is unsealed just when it is looked for is never taken for missing."""
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
def test_what_reads_back_differently_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    """A disk that garbles what is written costs no byte: the plain form stays."""
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


def test_a_damaged_form_is_not_unsealed(tmp_path: Path) -> None:
    """What cannot be read whole stays sealed, and can be set aside so that the agent's file takes its place."""
    copy = written(tmp_path)
    copy.compress()
    data = bytearray(copy.compressed_path.read_bytes())
    data[200] ^= 1
    copy.compressed_path.write_bytes(data)

    with pytest.raises(CopyDamaged, match=f"bytes 0-{FRAME - 1} of the content"):
        copy.decompress()
    assert files(tmp_path) == {NAME + COMPRESSED_SUFFIX}


@pytest.mark.parametrize("work", ["compress", "decompress"])
def test_killed_at_any_moment_the_copy_is_whole(tmp_path: Path, work: str) -> None:
    """Killed before any of the things it does to the disk, a process leaves every byte; the next completes the work."""
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
