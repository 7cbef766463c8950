"""Records in segments: parts of raw copies, memories and deletions, and the manifest that lists the segments."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from ...archiver.store.sync_table import Ranges
from ...core.errors import SyncRefused

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd


class CopyPart(Struct, frozen=True, tag="copy"):
    """Bytes of a raw copy, or of a result file beside it.

    Attributes:
        archived: Archive path on the device that sends it.
        version: Number of the version. A new version begins with the part at offset 0.
        last: True if the version is complete with this part.
    """

    archived: str
    version: int
    offset: int
    data: bytes
    last: bool


class MemoryRecord(Struct, frozen=True, tag="memory"):
    """Version of a memory. `memory` and `stats` are empty if it was erased."""

    uid: str
    lamport: int
    device: str
    forgotten: int
    restored: int
    erased: bool
    memory: Mapping[str, Any] = {}
    stats: Mapping[str, Any] = {}
    state: str = ""
    created: int = 0
    updated: int = 0


class DeletionRecord(Struct, frozen=True, tag="deletion"):
    """State of a deletion: `kept`, `erased` or `undone`, with the line ranges by the ID of the copy."""

    device: str
    number: int
    state: str
    lines: dict[str, Ranges]


Record: TypeAlias = CopyPart | MemoryRecord | DeletionRecord


def key_of(record: Record) -> str:
    """Return the key under which the record is sent. A later record of a key can replace an earlier one."""
    if isinstance(record, CopyPart):
        return f"copy:{record.archived}"
    if isinstance(record, MemoryRecord):
        return f"memory:{record.uid}"
    return f"deletion:{record.device}:{record.number}"


class SegmentEntry(Struct, frozen=True, array_like=True):
    """Segment in a manifest. `digest` is the SHA-256 of the file, `size` its bytes."""

    number: int
    digest: bytes
    size: int

    @property
    def name(self) -> str:
        """Name of the file."""
        return f"{self.number:012d}-{self.digest.hex()[:16]}.seg"


class Manifest(Struct, frozen=True):
    """List of the segments that a device offers.

    Attributes:
        revision: Number that grows with every manifest of the device.
        public: Public key of the device.
        segments: Segments in ascending order.
        read: Number of the last segment that this device has read, by device.
    """

    revision: int
    name: str
    public: bytes
    segments: tuple[SegmentEntry, ...]
    read: dict[str, int]


_DECODER = msgspec.msgpack.Decoder(list[Record])
_MOST = 1 << 28
"""Maximum bytes of a decompressed segment."""


def pack(records: Iterable[Record]) -> bytes:
    """Return records as a compressed segment."""
    return zstd.compress(msgspec.msgpack.encode(list(records)))


def unpack(data: bytes) -> list[Record]:
    """Return the records of a segment. Raises `SyncRefused` for other data."""
    try:
        content = zstd.ZstdDecompressor().decompress(data, _MOST)
        return _DECODER.decode(content)
    except (zstd.ZstdError, msgspec.DecodeError, EOFError) as error:
        raise SyncRefused(f"has unknown content ({error})", hint="Update Palaver on this machine.") from None
