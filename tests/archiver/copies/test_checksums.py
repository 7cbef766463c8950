"""Checksums cover every byte of a copy from its first write, and an append reads only the new bytes."""

import io
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.copies import storage_formats
from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.copies.storage_formats import BLOCK, Checksums, checksums_of
from palaver.core.errors import CopyDamaged

from ..history import ORIGINAL, History, talk

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

    storage_formats.verify(io.BytesIO(whole + b"more"), packed, COPY)
    for damaged in (changed, whole[:at]):
        with pytest.raises(CopyDamaged, match=r"differ from the archived content|are missing"):
            storage_formats.verify(io.BytesIO(damaged), packed, COPY)


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
        monkeypatch.setattr(storage_formats, "crc32", count)
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
