"""The tombstone file, which records every deletion with its keyed hashes.

It is stored beside the copies, so that deletions survive the loss of the database. It contains IDs, times, states and
keyed hashes, but no content. Before a transaction with a deletion commits, the whole file is replaced. A new or
restored database merges the deletions from the file.

The first line contains the number of the last write, the number of deletions and the fingerprint of the key. Every line
has a checksum.
"""

import base64
import hashlib
import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from ...core.conversation import Milliseconds
from ...core.durability import replacing, with_checksum, without_checksum
from ...core.errors import StoreError

_TITLE: Final = b"palaver-forgotten-2"
_UNCHECKED: Final = b"palaver-forgotten-1"
"""Prefix of a first line without a checksum. Earlier versions of Palaver wrote such lines."""
_STATES: Final = ("kept", "erasing", "erased")


class Tombstones(Struct, frozen=True):
    """One deletion with its tombstones: the keyed hashes of the deleted content."""

    number: int
    at: Milliseconds
    state: str
    hashes: tuple[int, ...]


class FileContent(Struct, frozen=True):
    """Readable deletions in a tombstone file, and the number of damaged deletions."""

    deletions: tuple[Tombstones, ...] = ()
    damaged: int = 0


class FileHeader(Struct, frozen=True):
    """First line of the file: number of the last write, number of deletions, and fingerprint of the key."""

    seq: int
    count: int
    fingerprint: bytes


NEVER_WRITTEN: Final = FileHeader(0, 0, b"")
"""Header for a missing file."""


class KeyLost(StoreError):
    """Error: the tombstones were made with another key, so they match no content."""

    def __init__(self, key: Path, tombstones: Path) -> None:
        self.path = key
        super().__init__(
            f"{key} does not match the list of deleted content, which would therefore reappear",
            hint=f"Restore {key} from a backup. If you have no backup, delete {tombstones}. Deleted content then "
            "reappears wherever an agent's file or the archive still contains it, and can be deleted again.",
        )


class KeyChanged(KeyLost):
    """Error: the secret placeholders were made with another key, and no deletion exists."""

    def __init__(self, key: Path) -> None:
        self.path = key
        StoreError.__init__(
            self,
            f"{key} was changed or damaged, so new placeholders of secrets would not match those in the archive",
            hint=f"Restore {key} from a backup. If you have no backup, run `palaver fsck --repair`. It accepts the "
            "current key, and the next `palaver archive` redacts all copies again.",
        )


def fingerprint(key: bytes) -> bytes:
    """Return a hash that identifies a key."""
    return hashlib.blake2b(key=key[:64], person=b"register", digest_size=8).hexdigest().encode()


class TombstoneFile:
    """Reader and writer of the tombstone file. A writer must hold the write lock of the database."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def header(self) -> FileHeader | None:
        """Return the first line. Return `NEVER_WRITTEN` for a missing file, and None if the first line is damaged.

        Raises:
            StoreError: The file cannot be read.
        """
        try:
            with self._path.open("rb") as file:
                return _header(file.readline())
        except FileNotFoundError:
            return NEVER_WRITTEN
        except OSError as error:
            raise self._unreadable(error) from None

    def read(self) -> FileContent:
        """Return all readable deletions, and the number of damaged deletions. Raises `StoreError` if reading fails."""
        try:
            first, *rows = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return FileContent()
        except OSError as error:
            raise self._unreadable(error) from None
        parsed = [_parse(row) for row in rows if row]
        deletions = tuple(each for each in parsed if each is not None)
        header = _header(first)
        # The first deletion creates the file, so an empty file has lost at least one deletion.
        count = header.count if header is not None else max(len(parsed), 1)
        return FileContent(deletions, max(count, len(parsed)) - len(deletions))

    def write(self, header: FileHeader, deletions: Iterable[Tombstones]) -> None:
        """Replace the file durably.

        Raises:
            StoreError: The file cannot be written. The previous file is kept.
        """
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing(self._path) as file:
                file.write(with_checksum(b"%s %d %d %s" % (_TITLE, header.seq, header.count, header.fingerprint)))
                file.writelines(map(_row, deletions))
        except OSError as error:
            reason = f"cannot write {self._path}: {error.strerror or error}"
            hint = "Nothing was changed. Check free space and permissions, then try again."
            raise StoreError(reason, hint=hint) from None

    def _unreadable(self, error: OSError) -> StoreError:
        reason = f"cannot read {self._path}: {error.strerror or error}"
        hint = "Palaver records deletions in this file. Check its permissions and the disk, then try again."
        return StoreError(reason, hint=hint)


def _row(each: Tombstones) -> bytes:
    fields = b"%d %d %s %s" % (each.number, each.at, each.state.encode(), _packed(each.hashes))
    return b"%08x %s\n" % (zlib.crc32(fields), fields)


def _parse(row: bytes) -> Tombstones | None:
    """Parse the deletion on a line. Return None if the line is damaged."""
    checksum, _, text = row.partition(b" ")
    fields = text.split(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(text) or len(fields) not in {4, 6}:  # Earlier versions wrote six fields.
            return None
        number, at, state, hashes = fields[:4]
        found = Tombstones(int(number), int(at), state.decode(), _unpacked(hashes))
    except (ValueError, struct.error):
        return None
    return found if found.state in _STATES else None


def _packed(hashes: Sequence[int]) -> bytes:
    return base64.b64encode(struct.pack(f">{len(hashes)}q", *hashes))


def _unpacked(text: bytes) -> tuple[int, ...]:
    packed = base64.b64decode(text, validate=True)
    return struct.unpack(f">{len(packed) // 8}q", packed)


def _header(row: bytes) -> FileHeader | None:
    if row.startswith(_TITLE):
        row = without_checksum(row) or b""
    title, *fields = row.rstrip(b"\n").split(b" ")
    if title not in {_TITLE, _UNCHECKED} or len(fields) != 3 or not (fields[0].isdigit() and fields[1].isdigit()):
        return None
    return FileHeader(int(fields[0]), int(fields[1]), fields[2])
