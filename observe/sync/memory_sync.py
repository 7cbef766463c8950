"""Memories on several devices: what changed here, and the merge of versions from other devices.

The content of a memory is that of its highest version, by Lamport number and then device. Where the loser was written,
it stays in the history of the memory. A forgotten memory stays forgotten until a device that knew of it restores it,
and an erased memory never returns.

Memories of sessions, which expire, and memories that are mirrored from files are not sent.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, Final
from uuid import UUID, uuid5

import msgspec
from msgspec.structs import asdict, replace

from ...archiver.store import Store
from ...archiver.store.sync_table import MemoryVersion, Sent
from ...core.conversation import now
from ...core.memory import (
    EventKind,
    Memory,
    MemoryEvent,
    MemoryState,
    MemoryStats,
    StoredMemory,
    family_of,
)
from ..extraction.preferences import EXCHANGE, OBSERVATION
from ..memory.contradictions import snapshot_of
from .outbox import Change
from .records import MemoryRecord

_NAMESPACE: Final = UUID("5b1e5d0c-52a6-4bb1-8f0f-0d7a3d5f9b6e")
"""Namespace of the IDs of memories."""
_LOCAL: Final = frozenset({EXCHANGE, OBSERVATION})
"""Metadata with IDs of one archive."""
_CONTEXT: Final = "another device"


class MemorySync:
    """Memories of one archive. `device` is the ID of this device."""

    def __init__(self, store: Store, device: str) -> None:
        self._store, self._device = store, device
        self._versions = store.sync.memories()

    def scan(self) -> None:
        """Give every memory that changed since the last run a new version."""
        by_key = {version.memory: version for version in self._versions.values() if version.memory is not None}
        stored = {memory.key: memory for memory in self._store.memories.all() if _is_shared(memory)}
        for key, memory in stored.items():
            state, version = _state_of(memory), by_key.get(key)
            if version is None:
                self._save(self._first_version(memory, state))
            elif version.state != state:
                self._save(self._next_version(version, memory, state))
        for version in list(self._versions.values()):
            if version.memory is None and not version.erased:
                self._save(version._replace(lamport=version.lamport + 1, device=self._device, erased=True))

    def _first_version(self, memory: StoredMemory, state: bytes) -> MemoryVersion:
        """Return the first version of a memory. The same claim on two devices has the same ID."""
        claim = memory.memory
        name = "\n".join((claim.namespace, family_of(memory.stats.promoted_from or claim.type), claim.content_hash))
        uid, number = uuid5(_NAMESPACE, name).hex, 1
        while uid in self._versions:
            number += 1
            uid = uuid5(_NAMESPACE, f"{name}\n{number}").hex
        forgotten = 1 if memory.state is MemoryState.ARCHIVED else 0
        return MemoryVersion(uid, memory.key, 1, self._device, forgotten, state=state)

    def _next_version(self, version: MemoryVersion, memory: StoredMemory, state: bytes) -> MemoryVersion:
        lamport = max(version.lamport, version.forgotten, version.restored) + 1
        forgotten, restored = version.forgotten, version.restored
        if memory.state is MemoryState.ARCHIVED and not version.is_forgotten:
            forgotten = lamport
        elif memory.state is not MemoryState.ARCHIVED and version.is_forgotten:
            restored = forgotten
        return version._replace(
            lamport=lamport, device=self._device, forgotten=forgotten, restored=restored, state=state
        )

    def changes(self) -> Iterator[Change]:
        """Yield the versions that this device made and has not sent yet."""
        sent = self._store.sync.sent("memory:")
        keys = [version.memory for version in self._versions.values() if version.memory is not None]
        stored = self._store.memories.load(keys)
        for uid, version in self._versions.items():
            key, mark = f"memory:{uid}", _hash(version[2:])
            if version.device != self._device or (key in sent and sent[key].state == mark):
                continue
            record = self._record(version, stored.get(version.memory or 0))
            yield Change(key, Sent(version.lamport, 0, mark, b"", ()), iter((record,)), replaces=version.erased)

    def _record(self, version: MemoryVersion, memory: StoredMemory | None) -> MemoryRecord:
        head = MemoryRecord(
            version.uid, version.lamport, version.device, version.forgotten, version.restored, version.erased
        )
        if memory is None:
            return head
        return replace(
            head,
            memory=_portable(memory.memory),
            stats=asdict(memory.stats),
            state=memory.state,
            created=memory.created,
            updated=memory.updated,
        )

    def receive(self, record: MemoryRecord) -> None:
        """Merge a version from another device. The caller opens the transaction."""
        version = self._versions.get(record.uid) or MemoryVersion(record.uid, None, 0, "")
        if version.erased:
            return
        if record.erased:
            if version.memory is not None:
                self._store.memories.delete([version.memory])
            self._save(_erased(record))
            return
        merged = version._replace(
            forgotten=max(version.forgotten, record.forgotten), restored=max(version.restored, record.restored)
        )
        wins = (record.lamport, record.device) > (version.lamport, version.device)
        if wins:
            merged = merged._replace(lamport=record.lamport, device=record.device)
        memory = msgspec.convert(record.memory, Memory)
        key = self._key_of(version, memory, record)
        before = self._store.memories.load([key])[key]
        self._keep_loser(before, memory, incoming=not wins)
        after = self._merged(before, memory, record) if wins else before
        state = MemoryState.ARCHIVED if merged.is_forgotten else _visible(after, record)
        after = replace(after, state=state)
        if after != before:
            self._store.memories.rewrite(after)
        self._save(merged._replace(memory=key, state=_state_of(after)))

    def _key_of(self, version: MemoryVersion, memory: Memory, record: MemoryRecord) -> int:
        """Return the key of the memory here, which is created if it is unknown."""
        if version.memory is not None:
            return version.memory
        same = self._store.memories.find_same(memory, str(record.stats.get("promoted_from", "")))
        if same is not None:
            return same
        key = self._store.memories.insert(memory, record.created)
        self._store.memory_events.add(MemoryEvent(key, EventKind.CREATED, record.created, _CONTEXT))
        return key

    def _keep_loser(self, before: StoredMemory, memory: Memory, *, incoming: bool) -> None:
        """Add the content that does not win to the history."""
        if before.memory.content != memory.content:
            loser = snapshot_of(replace(before, memory=memory) if incoming else before)
            self._store.memory_events.add(MemoryEvent(before.key, EventKind.EDITED, now(), _CONTEXT, before=loser))

    def _merged(self, before: StoredMemory, memory: Memory, record: MemoryRecord) -> StoredMemory:
        local = {name: value for name, value in before.memory.metadata.items() if name in _LOCAL}
        memory = replace(memory, metadata={**memory.metadata, **local}, path=before.memory.path)
        return replace(
            before,
            memory=memory,
            stats=msgspec.convert(record.stats, MemoryStats),
            state=MemoryState(record.state),
            created=record.created,
            updated=record.updated,
        )

    def _save(self, version: MemoryVersion) -> None:
        self._versions[version.uid] = version
        self._store.sync.save_memory(version)


def _erased(record: MemoryRecord) -> MemoryVersion:
    """Return the version of an erased memory."""
    return MemoryVersion(
        record.uid, None, record.lamport, record.device, record.forgotten, record.restored, erased=True
    )


def _visible(after: StoredMemory, record: MemoryRecord) -> MemoryState:
    """Return the state of a memory that is not forgotten."""
    if after.state is not MemoryState.ARCHIVED:
        return after.state
    state = MemoryState(record.state)
    return MemoryState.ACTIVE if state is MemoryState.ARCHIVED else state


def _is_shared(memory: StoredMemory) -> bool:
    return not memory.memory.path and memory.memory.layer != 1


def _portable(memory: Memory) -> Mapping[str, Any]:
    """Return a memory without IDs that only this archive knows."""
    metadata = {name: value for name, value in memory.metadata.items() if name not in _LOCAL}
    values: Mapping[str, Any] = msgspec.to_builtins(replace(memory, metadata=metadata))
    return values


def _state_of(stored: StoredMemory) -> bytes:
    """Return a hash of what other devices get. Recalls and decay do not count."""
    stats = stored.stats
    return _hash((_portable(stored.memory), stored.state, stats.successes, stats.failures, stats.promoted_from))


def _hash(value: object) -> bytes:
    return blake2b(msgspec.msgpack.encode(value), digest_size=16).digest()
