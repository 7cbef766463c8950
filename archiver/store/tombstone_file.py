"""The register: what was forgotten, in a small file beside the copies, so that forgetting outlives the database.

It says by keyed marks alone what the tables say, and is written whole and
at once before a transaction commits. A database that is new, or was restored from a backup, takes over what stands in
it. Its first line tells the number of the write, how many lines follow, and by which key the marks were made.
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
"""The title of first lines without a checksum."""
_STATES: Final = ("kept", "erasing", "erased")


class Entry(Struct, frozen=True):
    """One forgetting: its number, when it was decided, its state, and the marks of what it is about."""

    number: int
    at: Milliseconds
    state: str
    marks: tuple[int, ...]


class Registered(Struct, frozen=True):
    """What a register says; `damaged` lines could not be read."""

    entries: tuple[Entry, ...] = ()
    damaged: int = 0


class Head(Struct, frozen=True):
    """The first line: the number of the last write, how many entries it wrote, and the sign of their key."""

    seq: int
    count: int
    sign: bytes


NEVER: Final = Head(0, 0, b"")
"""What is told where nothing was ever written."""


class KeyLost(StoreError):
    """Something was forgotten, and the key by which it is known again is not the one that is there."""

    def __init__(self, key: Path, register: Path) -> None:
        self.path = key
        super().__init__(
            f"{key} is not the key by which is known what was forgotten: it would all come back",
            hint=f"Restore {key} from a backup. Without one, delete {register}: what was forgotten comes back where an "
            "agent's file or the archive still holds it, and can be forgotten again.",
        )


class KeyChanged(KeyLost):
    """The key is not the one with which the placeholders of secrets were made; nothing was forgotten under it."""

    def __init__(self, key: Path) -> None:
        self.path = key
        StoreError.__init__(
            self,
            f"{key} was changed or damaged: placeholders of secrets would no longer match those in the archive",
            hint=f"Restore {key} from a backup. Without one, run `palaver fsck --repair`: it accepts the present key, "
            "and the next `palaver archive` redacts all copies anew.",
        )


def sign(key: bytes) -> bytes:
    """What tells a key from another, and nothing of either."""
    return hashlib.blake2b(key=key[:64], person=b"register", digest_size=8).hexdigest().encode()


class TombstoneFile:
    """One file. Who writes has the write lock of the database."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def head(self) -> Head | None:
        """The first line, `NEVER` where there is no file, None where it is damaged. Raises `StoreError`."""
        try:
            with self._path.open("rb") as file:
                return _head(file.readline())
        except FileNotFoundError:
            return NEVER
        except OSError as error:
            raise self._unreadable(error) from None

    def read(self) -> Registered:
        """All that can be read; raises `StoreError`."""
        try:
            first, *rows = self._path.read_bytes().split(b"\n")
        except FileNotFoundError:
            return Registered()
        except OSError as error:
            raise self._unreadable(error) from None
        told = [_entry(row) for row in rows if row]
        entries = tuple(each for each in told if each is not None)
        head = _head(first)
        # A register is only written when there is something to tell: an empty one lost it.
        count = head.count if head is not None else max(len(told), 1)
        return Registered(entries, max(count, len(told)) - len(entries))

    def write(self, head: Head, entries: Iterable[Entry]) -> None:
        """Replace what stands there, durably; raises `StoreError`, and what stood there stays."""
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing(self._path) as file:
                file.write(with_checksum(b"%s %d %d %s" % (_TITLE, head.seq, head.count, head.sign)))
                file.writelines(map(_row, entries))
        except OSError as error:
            reason = f"{self._path} cannot be written: {error.strerror or error}"
            raise StoreError(reason, hint="Nothing was changed. Check free space and rights, then try again.") from None

    def _unreadable(self, error: OSError) -> StoreError:
        reason = f"{self._path} cannot be read: {error.strerror or error}"
        return StoreError(reason, hint="It says what was forgotten. Check its rights and the disk, then try again.")


def _row(entry: Entry) -> bytes:
    told = b"%d %d %s %s" % (entry.number, entry.at, entry.state.encode(), _packed(entry.marks))
    return b"%08x %s\n" % (zlib.crc32(told), told)


def _entry(row: bytes) -> Entry | None:
    """What a line says; None where it is not what was written."""
    sum_, _, told = row.partition(b" ")
    fields = told.split(b" ")
    try:
        if int(sum_, 16) != zlib.crc32(told) or len(fields) not in {4, 6}:  # earlier versions wrote two fields more
            return None
        number, at, state, marks = fields[:4]
        entry = Entry(int(number), int(at), state.decode(), _unpacked(marks))
    except (ValueError, struct.error):
        return None
    return entry if entry.state in _STATES else None


def _packed(marks: Sequence[int]) -> bytes:
    return base64.b64encode(struct.pack(f">{len(marks)}q", *marks))


def _unpacked(told: bytes) -> tuple[int, ...]:
    packed = base64.b64decode(told, validate=True)
    return struct.unpack(f">{len(packed) // 8}q", packed)


def _head(row: bytes) -> Head | None:
    if row.startswith(_TITLE):
        row = without_checksum(row) or b""
    title, *fields = row.rstrip(b"\n").split(b" ")
    if title not in {_TITLE, _UNCHECKED} or len(fields) != 3 or not (fields[0].isdigit() and fields[1].isdigit()):
        return None
    return Head(int(fields[0]), int(fields[1]), fields[2])
