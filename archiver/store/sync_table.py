"""Tables of `palaver sync`: what was sent, what was received, and which lines a deletion selected."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final, NamedTuple, TypeAlias

import orjson

from .database import Database

Ranges: TypeAlias = list[tuple[int, int]]
"""First and last lines (1-based, inclusive), in ascending order."""
FOREIGN: Final = "@"
"""Prefix of the folder with the raw copies of another device, below the folder of the agent."""


def copy_id(archived: str) -> str:
    """Return the ID of a raw copy: its device, and a hash of its archive path there. `""` stands for this device."""
    path = own_path(archived).encode(errors="surrogateescape")
    return f"{owner_of(archived)}:{blake2b(path, digest_size=16).hexdigest()}"


def shown_to(device: str, copy: str) -> str:
    """Return the ID of a raw copy as other devices know it. `device` is the ID of this device."""
    return device + copy if copy.startswith(":") else copy


def owner_of(archived: str) -> str:
    """Return the ID of the device from which a raw copy was received, or an empty string for a copy of this device."""
    folder = archived.split("/", 2)[1:2]
    return folder[0].removeprefix(FOREIGN) if folder and folder[0].startswith(FOREIGN) else ""


def own_path(archived: str) -> str:
    """Return the archive path that a raw copy has on the device that owns it."""
    if not owner_of(archived):
        return archived
    agent, _, path = archived.split("/", 2)
    return f"{agent}/{path}"


def foreign_path(device: str, archived: str) -> str:
    """Return the archive path here for a raw copy of another device."""
    agent, _, path = archived.partition("/")
    return f"{agent}/{FOREIGN}{device}/{path}"


def ranges_of(lines: Iterable[int]) -> Ranges:
    """Return line numbers as ranges."""
    ranges: Ranges = []
    for line in sorted(set(lines)):
        if ranges and ranges[-1][1] == line - 1:
            ranges[-1] = (ranges[-1][0], line)
        else:
            ranges.append((line, line))
    return ranges


def lines_of(ranges: Ranges) -> set[int]:
    """Return the line numbers in ranges."""
    return {line for first, last in ranges for line in range(first, last + 1)}


class SyncDevice(NamedTuple):
    """Device in the shared folder, as it was last accepted."""

    id: str
    name: str
    revision: int
    digest: bytes
    applied: int


class Sent(NamedTuple):
    """Content that this device last sent under a key.

    Attributes:
        version: Number of the version. A rewritten copy gets a new version, a copy with new bytes does not.
        size: Bytes of a copy.
        state: Hash that shows cheaply whether anything changed.
        digest: SHA-256 of the bytes of a copy.
        segments: Numbers of the segments with records of the key.
    """

    version: int
    size: int
    state: bytes
    digest: bytes
    segments: tuple[int, ...]


class ReceivedCopy(NamedTuple):
    """Version and bytes of a raw copy of another device. It is complete if all parts of the version have arrived."""

    version: int
    size: int
    complete: bool


class MemoryVersion(NamedTuple):
    """Version of a memory on all devices. See the schema for the meaning of the numbers."""

    uid: str
    memory: int | None
    lamport: int
    device: str
    forgotten: int = 0
    restored: int = 0
    erased: bool = False
    state: bytes = b""

    @property
    def is_forgotten(self) -> bool:
        """True if the memory is forgotten: a forgetting wins over every change but its own undo."""
        return self.forgotten > self.restored


class ForeignDeletion(NamedTuple):
    """Deletion of another device: its state, its line ranges by copy, and the deletions here that carried it out."""

    device: str
    number: int
    state: str
    lines: Mapping[str, Ranges]
    local: tuple[int, ...]


class SyncTable:
    """Tables of the synchronisation with other devices."""

    def __init__(self, database: Database) -> None:
        self._db = database

    # Devices.

    def devices(self) -> dict[str, SyncDevice]:
        """Return all devices by ID."""
        rows = self._db.rows("SELECT id, name, revision, digest, applied FROM sync_device")
        return {row[0]: SyncDevice(*row) for row in rows}

    def save_device(self, device: SyncDevice) -> None:
        """Insert or replace a device."""
        self._db.run("INSERT OR REPLACE INTO sync_device VALUES (?, ?, ?, ?, ?)", tuple(device))

    def reset(self) -> None:
        """Let everything be sent again, each copy as a new version. What was received is kept."""
        self._db.run("UPDATE sync_sent SET state = x'', digest = x'', segments = '[]'")

    def leave(self) -> None:
        """Forget all devices and what was sent. Copies, memories and deletions that were received are kept."""
        self._db.run("DELETE FROM sync_sent")
        self._db.run("DELETE FROM sync_device")

    # What was sent.

    def sent(self, prefix: str) -> dict[str, Sent]:
        """Return what was sent under the keys with a prefix, by key."""
        rows = self._db.rows(
            "SELECT key, version, size, state, digest, segments FROM sync_sent WHERE substr(key, 1, ?) = ?",
            (len(prefix), prefix),
        )
        return {row[0]: Sent(row[1], row[2], row[3], row[4], tuple(orjson.loads(row[5]))) for row in rows}

    def save_sent(self, key: str, sent: Sent) -> None:
        """Insert or replace what was sent under a key."""
        values = (key, *sent[:-1], orjson.dumps(sent.segments).decode())
        self._db.run("INSERT OR REPLACE INTO sync_sent VALUES (?, ?, ?, ?, ?, ?)", values)

    def drop_sent(self, keys: Collection[str]) -> None:
        """Forget what was sent under some keys."""
        self._db.run_many("DELETE FROM sync_sent WHERE key = ?", [(key,) for key in keys])

    # What was received.

    def copies(self) -> dict[str, ReceivedCopy]:
        """Return the received copies by archive path."""
        rows = self._db.rows("SELECT archived, version, size, complete FROM sync_copy")
        return {name: ReceivedCopy(version, size, bool(complete)) for name, version, size, complete in rows}

    def save_copy(self, archived: str, copy: ReceivedCopy) -> None:
        """Insert or replace a received copy."""
        self._db.run("INSERT OR REPLACE INTO sync_copy VALUES (?, ?, ?, ?)", (archived, *map(int, copy)))

    # Memories.

    def memories(self) -> dict[str, MemoryVersion]:
        """Return the versions of all memories by their ID on all devices."""
        rows = self._db.rows(
            "SELECT uid, memory, lamport, device, forgotten, restored, erased, state FROM sync_memory ORDER BY uid"
        )
        return {row[0]: MemoryVersion(*row)._replace(erased=bool(row[6])) for row in rows}

    def save_memory(self, version: MemoryVersion) -> None:
        """Insert or replace the version of a memory."""
        self._db.run("INSERT OR REPLACE INTO sync_memory VALUES (?, ?, ?, ?, ?, ?, ?, ?)", tuple(version))

    # Deletions.

    def note_lines(self, deletion: int, lines: Mapping[str, Iterable[int]]) -> None:
        """Record the lines that a deletion selected, by the ID of the copy."""
        rows = [(deletion, copy, orjson.dumps(ranges_of(numbers)).decode()) for copy, numbers in lines.items()]
        self._db.run_many("INSERT OR REPLACE INTO deleted_lines VALUES (?, ?, ?)", rows)

    def deleted_lines(self) -> dict[int, dict[str, Ranges]]:
        """Return the lines of each deletion, by the ID of the copy."""
        lines: dict[int, dict[str, Ranges]] = {}
        for deletion, copy, ranges in self._db.rows("SELECT deletion, copy, ranges FROM deleted_lines"):
            lines.setdefault(deletion, {})[copy] = _ranges(orjson.loads(ranges))
        return lines

    def deletions(self) -> list[ForeignDeletion]:
        """Return the deletions of other devices."""
        rows = self._db.rows("SELECT device, number, state, lines, local FROM sync_deletion ORDER BY device, number")
        return [
            ForeignDeletion(
                device,
                number,
                state,
                {copy: _ranges(ranges) for copy, ranges in orjson.loads(lines).items()},
                tuple(orjson.loads(local)),
            )
            for device, number, state, lines, local in rows
        ]

    def save_deletion(self, deletion: ForeignDeletion) -> None:
        """Insert or replace a deletion of another device."""
        lines, local = orjson.dumps(dict(deletion.lines)).decode(), orjson.dumps(deletion.local).decode()
        values = (deletion.device, deletion.number, deletion.state, lines, local)
        self._db.run("INSERT OR REPLACE INTO sync_deletion VALUES (?, ?, ?, ?, ?)", values)


def _ranges(values: Sequence[Sequence[int]]) -> Ranges:
    return [(first, last) for first, last in values]
