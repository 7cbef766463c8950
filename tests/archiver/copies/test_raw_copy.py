"""Tests of `raw_copy.py`."""

import errno
import os
import shutil
import stat
import subprocess
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from palaver.archiver.compressed_file import FRAME, CompressedFile
from palaver.archiver.copies import raw_copy as copies
from palaver.archiver.copies import raw_copy as raw_copies
from palaver.archiver.copies.raw_copy import COMPRESSED_SUFFIX, UNFINISHED, Copied, Copy, RawArchive, Stat
from palaver.archiver.store import Source
from palaver.core.errors import CopyDamaged, PathOutsideArchive, SourceUnreadable

from ... import crash_injection
from ...shared import SHARED

# Raw copies are exact, only grow, and are the only files that a caller's path can reach.


NAME = "claude-code/shop/one.jsonl"


@pytest.fixture
def raw(tmp_path: Path) -> RawArchive:
    return RawArchive(tmp_path / "archive")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "one.jsonl"
    path.write_bytes(b"one\n")
    return path


def source(path: Path, copied: Copied, archived: str = NAME) -> Source:
    """Return the source with the recorded state of this copy."""
    found = copied.stat
    return Source("agent", path, archived, found.device, found.inode, found.mtime, found.size, copied.head, copied.tail)


def content(raw: RawArchive, archived: str = NAME) -> bytes:
    with raw.open(archived) as copy:
        return copy.read()


@given(st.lists(st.binary(max_size=9000), min_size=1, max_size=4))
@example([b"", b"a" * 5000, b"b" * 5000])
def test_a_copy_follows_its_file_byte_for_byte(pieces: list[bytes]) -> None:
    """After every append, a copy equals its file, and its recorded state continues the previous state."""
    with TemporaryDirectory() as root:
        raw, path = RawArchive(Path(root, "archive")), Path(root, "file")
        path.write_bytes(b"")
        for piece in pieces:
            with path.open("ab") as file:
                file.write(piece)
            copied = raw.copy(path, NAME)

            assert content(raw) == path.read_bytes()
            assert copied.stat == Stat.of(path)
            assert raw.is_unchanged(source(path, copied), Stat.of(path))
            assert raw.is_continued(source(path, copied))


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 8192, 9000])
def test_a_changed_beginning_or_end_is_a_rewrite(raw: RawArchive, file: Path, size: int) -> None:
    """A changed or missing first or last byte indicates a rewrite instead of an append."""
    data = bytes(number % 251 for number in range(size))
    file.write_bytes(data)
    known = source(file, raw.copy(file, NAME))
    file.write_bytes(data + b"more")
    assert raw.is_continued(known)

    for changed in {b"?" + data[1:] + b"more", data[:-1] + b"?more", data[:-1]} if size else ():
        file.write_bytes(changed)
        assert not raw.is_continued(known)


def test_an_unreadable_file_counts_as_continued(raw: RawArchive, file: Path) -> None:
    """A missing file does not count as rewritten."""
    known = source(file, raw.copy(file, NAME))
    file.unlink()

    assert raw.is_continued(known)


def test_a_touched_or_replaced_file_is_changed(raw: RawArchive, file: Path) -> None:
    """A different time, size or inode, or a shorter copy, makes a file count as changed."""
    known = source(file, raw.copy(file, NAME))
    found = Stat.of(file)
    assert raw.is_unchanged(known, found)

    for other in (
        Stat(found.device + 1, found.inode, found.mtime, found.size),
        Stat(found.device, found.inode + 1, found.mtime, found.size),
        Stat(found.device, found.inode, found.mtime + 1, found.size),
        Stat(found.device, found.inode, found.mtime, found.size + 1),
    ):
        assert not raw.is_unchanged(known, other)
    (raw.root / NAME).write_bytes(b"")
    assert not raw.is_unchanged(known, found)


def test_a_copy_never_loses_a_byte(raw: RawArchive, file: Path) -> None:
    """Copying a file that became shorter does not shorten the copy."""
    raw.copy(file, NAME)
    file.write_bytes(b"on")
    copied = raw.copy(file, NAME)

    assert content(raw) == b"one\n"
    assert copied.stat.size == 4


def test_copies_are_readable_only_by_their_owner(raw: RawArchive, file: Path) -> None:
    """Other users have no permission to read copies."""
    raw.copy(file, NAME)

    assert stat.S_IMODE((raw.root / NAME).stat().st_mode) == 0o600


def test_a_deleted_file_is_reported(raw: RawArchive, tmp_path: Path) -> None:
    """The error reports the file and the reason, and no empty copy remains."""
    with pytest.raises(SourceUnreadable, match="gone: the file was deleted before it could be copied"):
        raw.copy(tmp_path / "gone", NAME)
    assert not raw.root.exists()


def test_a_full_disk_is_reported_for_the_file(raw: RawArchive, file: Path) -> None:
    """If a copy cannot be written, the error contains the reason."""
    (raw.root / NAME).mkdir(parents=True)

    with pytest.raises(SourceUnreadable, match="directory"):
        raw.copy(file, NAME)


def test_names_of_other_copies_get_a_number(raw: RawArchive, file: Path) -> None:
    """A second copy with the same name gets a number. A copy that the file begins with is reused."""
    assert raw.free_name(NAME, set(), file) == NAME
    assert raw.free_name(NAME, {NAME, "claude-code/shop/one~2.jsonl"}, file) == "claude-code/shop/one~3.jsonl"

    raw.copy(file, NAME)
    file.write_bytes(b"one\ntwo\n")
    assert raw.free_name(NAME, set(), file) == NAME

    file.write_bytes(b"other\n")
    assert raw.free_name(NAME, set(), file) == "claude-code/shop/one~2.jsonl"

    file.write_bytes(b"on")
    assert raw.free_name(NAME, set(), file) == "claude-code/shop/one~2.jsonl"


def compressed(raw: RawArchive, file: Path, data: bytes = b"one\n") -> Source:
    """Return a source with a compressed copy of this content."""
    file.write_bytes(data)
    known = source(file, raw.copy(file, NAME))
    Copy(raw.root, NAME).compress()
    return known


def test_compression_changes_no_content(raw: RawArchive, file: Path) -> None:
    """Compression changes neither the name and content of a copy nor the recorded state of the file."""
    known = compressed(raw, file)

    assert raw.is_unchanged(known, Stat.of(file))
    assert raw.is_continued(known)
    assert content(raw) == b"one\n"
    assert raw.relative(NAME) == raw.relative(str(raw.root / NAME)) == raw.relative(NAME + COMPRESSED_SUFFIX) == NAME
    assert raw.free_name(NAME, set(), file) == NAME


def test_a_touched_file_leaves_its_copy_compressed(raw: RawArchive, file: Path) -> None:
    """Archiving a file without new content does not decompress its copy."""
    known = compressed(raw, file, b"a" * 9000)
    file.touch()

    copied = raw.copy(file, NAME)
    assert (copied.head, copied.tail, copied.stat) == (known.head, known.tail, Stat.of(file))
    assert not (raw.root / NAME).exists()


def test_a_compressed_copy_is_decompressed_when_its_file_grows(raw: RawArchive, file: Path) -> None:
    """The copy of a resumed session is uncompressed and complete."""
    known = compressed(raw, file)
    with file.open("ab") as more:
        more.write(b"two\n")

    assert not raw.is_unchanged(known, Stat.of(file))
    assert raw.is_continued(known)
    copied = raw.copy(file, NAME)
    assert copied.stat == Stat.of(file)
    assert (raw.root / NAME).read_bytes() == b"one\ntwo\n"
    assert not (raw.root / (NAME + COMPRESSED_SUFFIX)).exists()


def test_a_rewritten_file_leaves_its_compressed_copy_unchanged(raw: RawArchive, file: Path) -> None:
    """The earlier content stays compressed under its name. The new content gets another name."""
    known = compressed(raw, file)
    file.write_bytes(b"other\n")

    assert not raw.is_continued(known)
    assert raw.free_name(NAME, set(), file) == "claude-code/shop/one~2.jsonl"
    assert content(raw) == b"one\n"


@pytest.mark.parametrize("damage", ["cut", "flipped", "emptied"])
@pytest.mark.parametrize("more", [b"", b"two\n"])
def test_a_damaged_copy_is_replaced_while_its_file_exists(
    raw: RawArchive, file: Path, damage: str, more: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """The agent's file is copied again, and the damaged copy is kept under another name."""
    known = compressed(raw, file)
    path = raw.root / (NAME + COMPRESSED_SUFFIX)
    data = path.read_bytes()
    broken = {"cut": data[:-5], "flipped": data[:-20] + b"?" + data[-19:], "emptied": b""}[damage]
    path.write_bytes(broken)
    with file.open("ab") as grown:
        grown.write(more)

    assert not raw.is_unchanged(known, Stat.of(file))
    assert raw.is_continued(known)
    raw.copy(file, NAME)
    assert content(raw) == b"one\n" + more
    assert path.with_name(f"{path.name}.damaged").read_bytes() == broken
    assert "the damaged copy is kept" in caplog.text


def test_a_damaged_copy_stays_if_the_disk_is_full(raw: RawArchive, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The damaged copy stays under its name until a new copy is complete."""
    compressed(raw, file)
    path = raw.root / (NAME + COMPRESSED_SUFFIX)
    path.write_bytes(path.read_bytes()[:-20])
    before = {each: each.read_bytes() for each in raw.root.rglob("*") if each.is_file()}
    with file.open("ab") as grown:
        grown.write(b"two\n")

    def full(source: BinaryIO, target: Path, _: object) -> Copied:
        target.write_bytes(source.read(1))
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(raw_copies, "_append", full)
        with pytest.raises(SourceUnreadable):
            raw.copy(file, NAME)

    assert {each: each.read_bytes() for each in raw.root.rglob("*") if each.is_file()} == before
    raw.copy(file, NAME)
    assert content(raw) == b"one\ntwo\n"


def test_a_damaged_copy_is_never_reused(raw: RawArchive, file: Path) -> None:
    """A file with an unreadable copy gets a new copy under another name."""
    compressed(raw, file)
    (raw.root / (NAME + COMPRESSED_SUFFIX)).write_bytes(b"")

    assert raw.free_name(NAME, set(), file) == "claude-code/shop/one~2.jsonl"


def test_no_copy_gets_a_name_with_the_compressed_suffix(raw: RawArchive, file: Path) -> None:
    """No copy gets a name with the suffix of compressed files."""
    assert raw.free_name(NAME + COMPRESSED_SUFFIX, set(), file) == "claude-code/shop/one.jsonl.sealed~2.zst"


@pytest.mark.parametrize("form", ["uncompressed", "compressed"])
def test_lines_are_found_from_any_earlier_line(raw: RawArchive, file: Path, form: str) -> None:
    """Reading by line number can start at any known earlier line."""
    lines = [b"%d\n" % number for number in range(1, 1001)]
    file.write_bytes(b"".join(lines))
    raw.copy(file, NAME)
    if form == "compressed":
        Copy(raw.root, NAME).compress()

    for first, last in ((1, 1), (500, 600), (1000, 1000), (999, 2000)):
        for near in {1, first // 2 + 1, first}:
            place = (near, len(b"".join(lines[: near - 1])))
            assert list(raw.lines(NAME, first, last, place)) == lines[first - 1 : last]


@pytest.fixture
def inside(raw: RawArchive, file: Path) -> Path:
    """Create a copy, a secret outside the archive, and links from the archive to the secret. Return the copy."""
    raw.copy(file, NAME)
    secret = raw.root.parent / "secret"
    secret.mkdir()
    (secret / "key").write_bytes(b"key")
    (raw.root / "claude-code" / "out").symlink_to(secret)
    (raw.root / "claude-code" / "key.jsonl").symlink_to(secret / "key")
    (raw.root / "claude-code" / "within.jsonl").symlink_to(raw.root / NAME)
    (raw.root / "claude-code" / "loop").symlink_to(raw.root / "claude-code" / "loop")
    os.mkfifo(raw.root / "claude-code" / "fifo")
    return raw.root / NAME


def test_a_copy_has_a_relative_and_an_absolute_path(raw: RawArchive, inside: Path) -> None:
    """Both paths resolve to the same file."""
    assert raw.resolve(NAME) == inside.resolve()
    assert raw.resolve(str(inside)) == inside.resolve()
    assert raw.relative(str(inside)) == raw.relative(NAME) == NAME


def test_an_archive_behind_a_link_works(raw: RawArchive, inside: Path, tmp_path: Path) -> None:
    """Files are readable if the home is a symbolic link, such as a temporary folder on some systems."""
    (tmp_path / "link").symlink_to(raw.root)
    linked = RawArchive(tmp_path / "link")

    assert linked.relative(NAME) == NAME
    assert linked.relative(str(tmp_path / "link" / NAME)) == NAME
    assert linked.relative(str(inside)) == NAME
    with pytest.raises(PathOutsideArchive):
        linked.resolve(str(tmp_path / "link" / "claude-code" / "within.jsonl"))


REFUSED = [
    "",
    ".",
    "/",
    "claude-code",
    "claude-code/shop/",
    "claude-code/shop/missing.jsonl",
    f"{NAME}/x",
    "claude-code/out/key",
    "claude-code/key.jsonl",
    "claude-code/within.jsonl",
    "claude-code/loop",
    "claude-code/loop/x",
    "claude-code/fifo",
    "claude-code/../claude-code/shop/one.jsonl",
    "../archive/claude-code/shop/one.jsonl",
    "../secret/key",
    "claude-code/../../secret/key",
    "/etc/passwd",
    "//etc/passwd",
    "~/.ssh/id_rsa",
    f"{NAME}\0",
    f"{NAME}\0.jsonl",
    "\0",
    "a" * 300,
    "a/" * 3000,
    "x" * 100_000,
    "\ud800",
    "claude-code\\shop\\one.jsonl",
    "claude-code%2Fshop%2Fone.jsonl",
    "file:///etc/passwd",
]


@pytest.mark.parametrize("path", REFUSED, ids=range(len(REFUSED)))
def test_nothing_outside_the_archive_is_reachable(raw: RawArchive, inside: Path, path: str) -> None:
    """Paths out of the archive, links, folders, special files and invalid names raise the same error."""
    assert inside.exists()
    for asked in (path, f"{raw.root}/{path}"):
        with pytest.raises(PathOutsideArchive) as refused:
            raw.resolve(asked)
        assert str(refused.value) == f"No archived file or session: {asked}"


def test_a_missing_archive_contains_no_file(raw: RawArchive) -> None:
    """Before the first copy, every path raises the same error."""
    with pytest.raises(PathOutsideArchive):
        raw.resolve(NAME)


def traversals() -> Iterator[str]:
    with tarfile.open(SHARED / "hostile" / "payloads.tar.gz") as archive:
        for member in archive:
            if member.isfile() and "/directory-traversal/" in member.name:
                file = archive.extractfile(member)
                assert file is not None
                yield from file.read().decode("utf-8", "surrogateescape").splitlines()


@pytest.mark.skipif(not (SHARED / "hostile" / "payloads.tar.gz").exists(), reason="needs the list of payloads")
def test_published_path_traversals_fail(raw: RawArchive, inside: Path) -> None:
    """No payload of the public lists reaches a file outside the archive."""
    assert inside.exists()
    payloads = list(traversals())
    assert len(payloads) > 1000
    for payload in payloads:
        for wanted in ("etc/passwd", "secret/key"):
            asked = payload.replace("{FILE}", wanted)
            for path in (asked, f"claude-code/{asked}", f"{raw.root}/{asked}"):
                with pytest.raises(PathOutsideArchive):
                    raw.resolve(path)


steps = st.sampled_from(
    ["..", ".", "", "claude-code", "shop", "one.jsonl", "out", "key", "within.jsonl", "secret", "archive", "~", "\0"]
)


@given(st.lists(steps, max_size=8).map("/".join) | st.text(max_size=30), st.booleans())
def test_every_reachable_path_is_a_copy(path: str, whole: bool) -> None:
    """Any path raises the same error or returns a regular file inside the archive."""
    with TemporaryDirectory() as folder:
        raw, secret = RawArchive(Path(folder, "archive")), Path(folder, "secret")
        secret.mkdir()
        (secret / "key").write_bytes(b"key")
        raw.copy(secret / "key", NAME)
        (raw.root / "claude-code" / "out").symlink_to(secret)
        asked = f"{raw.root}/{path}" if whole else path
        try:
            found = raw.resolve(asked)
        except PathOutsideArchive:
            return
        assert found == (raw.root / NAME).resolve()
        assert ".." not in Path(asked).parts


# A copy has two storage formats, and each byte stays readable while the format changes.


WORKER = "tests.archiver.copies.compression_worker"
RAW_COPY_NAME = "agent/shop/one.jsonl"
DATA = b"".join(b'{"line": %d, "text": "%d"}\n' % (line, line * line) for line in range(30_000))


def written(root: Path, data: bytes = DATA) -> Copy:
    copy = Copy(root, RAW_COPY_NAME)
    copy.path.parent.mkdir(parents=True, exist_ok=True)
    copy.path.write_bytes(data)
    return copy


def raw_copy_content(copy: Copy) -> bytes:
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
    assert files(tmp_path) == {RAW_COPY_NAME + COMPRESSED_SUFFIX}
    assert (raw_copy_content(copy), copy.size()) == (data, len(data))
    assert copy.compressed_path.stat().st_mode & 0o077 == 0

    copy.decompress()
    assert files(tmp_path) == {RAW_COPY_NAME}
    assert (raw_copy_content(copy), copy.size()) == (data, len(data))
    assert copy.path.stat().st_mode & 0o077 == 0


def test_a_missing_copy_is_empty(tmp_path: Path) -> None:
    """A missing copy has size 0, and no operation creates it."""
    copy = Copy(tmp_path, RAW_COPY_NAME)

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
    assert raw_copy_content(copy) == DATA
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
    assert files(tmp_path) == {RAW_COPY_NAME}
    assert raw_copy_content(copy) == DATA


def test_a_damaged_compressed_file_is_not_decompressed(tmp_path: Path) -> None:
    """A compressed file with lost raw_copy_content stays unchanged."""
    copy = written(tmp_path)
    copy.compress()
    data = bytearray(copy.compressed_path.read_bytes())
    data[200] ^= 1
    copy.compressed_path.write_bytes(data)

    with pytest.raises(CopyDamaged, match=f"bytes 0-{FRAME - 1} of the content"):
        copy.decompress()
    assert files(tmp_path) == {RAW_COPY_NAME + COMPRESSED_SUFFIX}


@pytest.mark.parametrize("work", ["compress", "decompress"])
def test_a_copy_survives_a_kill_at_any_moment(tmp_path: Path, work: str) -> None:
    """If a process is killed before any disk change, no byte is lost, and the next process completes the change."""
    changes = crash_injection.steps(run(work, tmp_path / "calm", 0))
    assert changes >= 6
    root = tmp_path / "killed"
    for point in range(1, changes + 1):
        crash_injection.kill(partial(run, work, root), point)
        copy = Copy(root, RAW_COPY_NAME)
        assert raw_copy_content(copy) == DATA
        assert copy.size() == len(DATA)

        if copy.path.exists():
            copy.compress()
        assert raw_copy_content(copy) == DATA
        copy.decompress()
        assert files(root) - {name for name in files(root) if name.startswith(UNFINISHED)} == {RAW_COPY_NAME}
        assert raw_copy_content(copy) == DATA


def run(work: str, root: Path, at: int) -> subprocess.CompletedProcess[str]:
    """Run a process that compresses a copy or decompresses a compressed copy."""
    shutil.rmtree(root, ignore_errors=True)
    copy = written(root)
    if work == "decompress":
        copy.compress()
    return crash_injection.run(WORKER, work, root, RAW_COPY_NAME, at)
