"""Tests of `checksums.py` and `compressed_file.py`."""

import io
import os
import random
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.archiver import compressed_file
from palaver.archiver.compressed_file import FRAME, CompressedFile, compress
from palaver.archiver.copies import checksums
from palaver.archiver.copies.checksums import BLOCK, Checksums, checksums_of
from palaver.archiver.copies.raw_copy import RawArchive
from palaver.core.errors import CopyDamaged

from ...shared import SAMPLES
from ..history import ORIGINAL, History, talk

# Checksums cover every byte of a copy from its first write, and an append reads only the new bytes.


COPY = Path("copy")
SIZES = st.lists(st.integers(0, 2 * BLOCK), max_size=4)


def content(size: int) -> bytes:
    return bytes(number % 251 for number in range(size))


@given(SIZES)
def test_checksums_do_not_depend_on_write_sizes(sizes: list[int]) -> None:
    """A file that grew in several writes has the same checksums as a file written at once."""
    data = content(sum(sizes))
    file, packed = io.BytesIO(data), b""
    for size in sizes:
        sums = Checksums(packed)
        sums.add(file.read(size))
        packed = sums.pack()

    assert (packed or Checksums().pack()) == checksums_of(io.BytesIO(data))


@given(st.integers(1, 3 * BLOCK), st.data())
def test_changed_or_missing_bytes_are_damage(size: int, data: st.DataObject) -> None:
    """Any changed or missing byte is damage. Bytes after the covered range are not."""
    whole = content(size)
    packed, at = checksums_of(io.BytesIO(whole)), data.draw(st.integers(0, size - 1))
    changed = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]

    checksums.verify(io.BytesIO(whole + b"more"), packed, COPY)
    for damaged in (changed, whole[:at]):
        with pytest.raises(CopyDamaged, match=r"differ from the archived content|are missing"):
            checksums.verify(io.BytesIO(damaged), packed, COPY)


def test_an_append_reads_no_earlier_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the new bytes of a growing file are checksummed."""
    covered = list[int]()

    def count(piece: bytes, value: int = 0) -> int:
        covered.append(len(piece))
        return crc32(piece, value)

    with History(tmp_path) as history:
        history.write(talk(*(f"word{number}" * 300 for number in range(40))))
        history.ingest()
        before = history.source()
        history.append(talk("last"))
        monkeypatch.setattr(checksums, "crc32", count)
        history.ingest()
        after = history.source()

        assert sum(covered) == after.size - before.size
        assert after.sums == checksums_of(io.BytesIO(history.path().read_bytes()))


def test_a_copy_without_a_row_gets_all_checksums(tmp_path: Path) -> None:
    """A copy without a row is compared with the agent's file, and all its bytes get checksums."""
    with History(tmp_path) as history:
        path = history.write(talk("one", "two"))
        copy = history.home.archive / f"claude-code/shop/{ORIGINAL}.jsonl"
        copy.parent.mkdir(parents=True)
        copy.write_bytes(path.read_bytes()[:100])
        history.ingest()

        assert history.source().sums == checksums_of(io.BytesIO(path.read_bytes()))
        RawArchive(history.home.archive).verify(history.source())


# Any part of a compressed file is readable, and damage affects only the damaged frame.


def made(path: Path, data: bytes) -> Path:
    with path.open("wb") as target:
        compress(io.BytesIO(data), target)
    return path


def is_damaged(file: CompressedFile) -> bool:
    """Return whether reading any frame, the table or the end of a file raises an error."""
    try:
        file.seek(0)
        file.read()
    except CopyDamaged:
        return True
    finally:
        file.seek(0)
    return bool(file.format_damage())


def numbered_lines(frames: float, seed: int = 1) -> bytes:
    """Return numbered lines of different lengths that fill several frames."""
    chance, lines, size = random.Random(seed), list[bytes](), 0
    while size < frames * FRAME:
        lines.append(b"%d %s\n" % (len(lines) + 1, chance.randbytes(chance.choice([0, 3, 200, 9000])).hex().encode()))
        size += len(lines[-1])
    return b"".join(lines)


@settings(max_examples=60)
@given(
    data=st.lists(st.sampled_from([b"", b"\n", b"a", b"\r\n", b"line\n", b"x" * 40])).map(b"".join),
    places=st.lists(st.integers(0, 400), max_size=5),
)
def test_any_part_is_readable(data: bytes, places: list[int]) -> None:
    """Any byte range and any line is readable, regardless of frame boundaries."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(compressed_file, "FRAME", 16)
        with CompressedFile(made(Path(folder, "packed"), data)) as file:
            assert file.read() == data
            assert not is_damaged(file)
            for place in places:
                file.seek(place)
                assert file.read(50) == data[place : place + 50]
            starts = [0, *(at + 1 for at, byte in enumerate(data) if byte == 10)]
            assert [file.start_of(line) for line in range(1, len(starts) + 1)] == starts


def test_a_file_with_full_size_frames_is_readable(tmp_path: Path) -> None:
    """A file with frames of production size is readable, even if one line fills several frames."""
    data = numbered_lines(2) + b"x" * (3 * FRAME) + b"\n" + numbered_lines(1)
    with CompressedFile(made(tmp_path / "packed", data)) as file:
        assert file.read() == data
        assert [file.start_of(line) for line in (1, 50)] == [0, len(b"".join(data.splitlines(keepends=True)[:49]))]


@pytest.mark.skipif(shutil.which("zstd") is None, reason="needs zstd")
def test_zstd_restores_the_file(tmp_path: Path) -> None:
    """`zstd` can decompress the file without Palaver."""
    data = numbered_lines(2.5)
    path = made(tmp_path / "packed", data)

    assert subprocess.run(["zstd", "-dc", path], check=True, capture_output=True).stdout == data


def test_reading_a_part_decompresses_few_frames(tmp_path: Path) -> None:
    """Reading a hundred lines in the middle decompresses only the frames with these lines."""
    data = numbered_lines(40)
    lines = data.splitlines(keepends=True)
    path, middle = made(tmp_path / "packed", data), len(lines) // 2
    with CompressedFile(path) as file, pytest.MonkeyPatch.context() as patch:
        unpacked, read = list[int](), os.pread

        def counted(descriptor: int, count: int, at: int) -> bytes:
            unpacked.append(at)
            return read(descriptor, count, at)

        patch.setattr(os, "pread", counted)
        start = file.start_of(middle)
        assert start is not None
        file.seek(start)
        assert [file.readline() for _ in range(100)] == lines[middle - 1 : middle + 99]
        assert len(unpacked) <= 2 + sum(map(len, lines[middle - 1 : middle + 99])) // FRAME + 1


DATA = numbered_lines(5.5)


def readable(path: Path) -> dict[int, bytes]:
    """Return the readable content at the start of each frame of DATA."""
    found: dict[int, bytes] = {}
    for start in range(0, len(DATA), FRAME):
        try:
            with CompressedFile(path) as file:
                file.seek(start)
                found[start] = file.read(100)
        except CopyDamaged:
            continue
    return found


def test_a_flipped_bit_damages_one_frame(tmp_path: Path) -> None:
    """A flipped bit that changes content is detected, and all other frames are read correctly."""
    path = made(tmp_path / "packed", DATA)
    whole, chance = path.read_bytes(), random.Random(7)
    places = [*chance.sample(range(len(whole)), 25), *range(len(whole) - 30, len(whole)), *range(12)]
    for place in places:
        data = bytearray(whole)
        data[place] ^= 1 << chance.randrange(8)
        path.write_bytes(data)

        with CompressedFile(path) as file:
            assert is_damaged(file) or file.read() == DATA, place
        found = readable(path)
        assert len(found) >= 5, place
        assert all(content == DATA[start : start + 100] for start, content in found.items()), place


def test_the_error_reports_damaged_lines_and_bytes(tmp_path: Path) -> None:
    """The error reports the lost lines, so that the other lines can be read."""
    path = made(tmp_path / "packed", DATA)
    with CompressedFile(path) as file:
        at, lines = file.table.offsets, file.table.lines
    data = bytearray(path.read_bytes())
    data[at[2] + 1000] ^= 1
    path.write_bytes(data)

    with CompressedFile(path) as file, pytest.raises(CopyDamaged) as refused:
        file.read()
    where = f"lines {lines[2] + 1}-{lines[3] + 1}, bytes {2 * FRAME}-{3 * FRAME - 1} of the content are damaged"
    assert where in str(refused.value)
    assert refused.value.path == path
    assert "palaver read" in refused.value.hint


@pytest.mark.parametrize("kept", [0, 1, 9, 0.3, 0.6, 0.97, -1, -9, -100])
def test_a_truncated_file_is_readable_up_to_its_end(tmp_path: Path, kept: float) -> None:
    """Reading past a truncated end raises an error instead of reporting the end of the file."""
    path = made(tmp_path / "packed", DATA)
    whole = path.read_bytes()
    with CompressedFile(path) as file:
        ends = file.table.offsets[1:]
    size = int(kept * len(whole)) if 0 < kept < 1 else int(kept) % len(whole)
    path.write_bytes(whole[:size])

    assert len(readable(path)) >= sum(end <= size for end in ends)
    with CompressedFile(path) as file:
        assert is_damaged(file)
        if size < ends[-1]:
            with pytest.raises(CopyDamaged, match="its end is missing"):
                file.read()
        else:
            assert file.read() == DATA


def test_a_lost_table_and_a_damaged_frame_affect_one_frame(tmp_path: Path) -> None:
    """If the table and one frame are damaged, the other frames keep their offsets."""
    path = made(tmp_path / "packed", DATA)
    with CompressedFile(path) as file:
        at = file.table.offsets
    for place in (at[2], at[2] + 5, at[2] + 7, at[3] - 2):
        data = bytearray(made(path, DATA).read_bytes())
        data[-5] ^= 1
        data[place] ^= 0xFF
        path.write_bytes(data)
        with CompressedFile(path) as file:
            assert file.start_of(2) is None
        found = readable(path)
        assert found == {start: DATA[start : start + 100] for start in range(0, len(DATA), FRAME) if start != 2 * FRAME}


@pytest.mark.parametrize("data", [b"", b"\0", b"no zstd", b"{}\n" * 1000, b"\x28\xb5\x2f\xfd" * 5], ids=range(5))
def test_any_other_file_is_damaged(tmp_path: Path, data: bytes) -> None:
    """A file in another format is rejected when it is read."""
    path = tmp_path / "packed"
    path.write_bytes(data)

    with pytest.raises(CopyDamaged), CompressedFile(path) as file:
        file.read()


@pytest.mark.skipif(not SAMPLES.exists(), reason="needs the samples")
def test_real_transcripts_shrink_to_at_most_a_quarter(tmp_path: Path) -> None:
    """The compressed samples, including small files, need at most 25 % of the original bytes."""
    before = after = 0
    for number, sample in enumerate(path for path in sorted(SAMPLES.rglob("*.json*")) if path.is_file()):
        data = sample.read_bytes()
        path = made(tmp_path / str(number), data)
        with CompressedFile(path) as file:
            assert file.read() == data
        before += len(data)
        after += path.stat().st_size
    assert after <= 0.25 * before
