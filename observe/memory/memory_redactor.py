"""Redaction of memories: of new ones, and of stored ones when newer rules detect more secrets."""

import time
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from msgspec.structs import replace

from ...archiver.redaction import VERSION, Redactor
from ...archiver.store import Store
from ...core.errors import InvalidNamespace
from ...core.memory import Memory, MemoryRevision, MemoryState, StoredMemory
from ...core.runtime import Progress, silent
from ...core.text import readable, visible
from .supersession import parse_snapshot, snapshot

_SECONDS_MAX: Final = 20.0
"""Maximum seconds that one ingest run spends on stored memories. The next run continues."""
_BATCH: Final = 200
_TEXT_FIELDS: Final = ("content", "title", "project", "level", "source", "session_id")
"""Text fields that are redacted. A namespace that contains a secret is rejected. A path is never changed."""

_Json: TypeAlias = str | Mapping[Any, Any] | tuple[Any, ...] | list[Any] | float | None


class MemoryRedactor:
    """Redactor that replaces each secret in a memory with a placeholder. Redacting again changes nothing."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor

    def memory(self, memory: Memory) -> Memory:
        """Return the memory without secrets.

        Raises:
            InvalidNamespace: The namespace contains a secret.
        """
        return replace(memory, **self._fields(memory))

    def revision(self, revision: MemoryRevision) -> MemoryRevision:
        """Return the revision without secrets. Raises the errors of `memory`."""
        return replace(revision, **self._fields(revision))

    def text(self, text: str) -> str:
        """Return a text without secrets and invisible characters. Invalid bytes become U+FFFD."""
        return self._redactor.redact(visible(readable(text))).text

    def snapshot(self, text: str) -> str:
        """Return a snapshot of a memory without secrets."""
        memory, confidence = parse_snapshot(text)
        clean = self.memory(memory)
        return text if clean == memory else snapshot(clean, confidence)

    def _fields(self, source: Memory | MemoryRevision) -> dict[str, Any]:
        if source.namespace and (clean := self.text(source.namespace)) != source.namespace:
            raise InvalidNamespace(clean)
        given = {name: getattr(source, name, None) for name in (*_TEXT_FIELDS, "tags", "metadata")}
        return {name: self._value(value) for name, value in given.items() if value is not None}

    def _value(self, value: _Json) -> Any:
        match value:
            case str():
                return self.text(value)
            case Mapping():
                return {self._value(name): self._named_value(name, each) for name, each in value.items()}
            case tuple():
                return tuple(map(self._value, value))
            case list():
                return list(map(self._value, value))
            case _:
                return value

    def _named_value(self, name: object, value: Any) -> Any:
        """Return a value without secrets. After a key such as `password`, the whole value is a secret."""
        clean = self._value(value)
        if clean != value or not isinstance(value, str) or not isinstance(name, str):
            return clean
        found = self._redactor.redact(f'{name} = "{value}"').findings
        return str(found[0]) if found and not self._redactor.redact(name).findings else clean


def redact_stored_memories(store: Store, redactor: Redactor, progress: Progress = silent) -> int:
    """Redact memories that were last checked with older rules. Return the number of memories with a secret.

    A redaction is not an edit: `updated` stays unchanged and no event is added, because the event would contain the
    secret. The user's own file in `.mnemonics` stays unchanged.
    """
    memory_redactor, end, found, done = MemoryRedactor(redactor), time.monotonic() + _SECONDS_MAX, 0, 0
    while time.monotonic() < end and (keys := store.memories.to_redact(VERSION, _BATCH)):
        with store.transaction():
            found += sum(_redact(store, memory_redactor, stored) for stored in store.memories.load(keys).values())
            store.memories.mark_redacted(keys, VERSION)
        done += len(keys)
        progress(done, done + len(store.memories.to_redact(VERSION, _BATCH)))
    return found


def _redact(store: Store, redactor: MemoryRedactor, stored: StoredMemory) -> bool:
    """Redact a memory, its events and its edges inside a transaction. Return whether they contained a secret."""
    memory = redactor.memory(stored.memory)
    found = memory != stored.memory
    if found:
        store.memories.rewrite(replace(stored, memory=memory, state=_state(store, stored, memory)))
        store.mnemonics.rehash(stored.key, stored.memory.content_hash, memory.content_hash)
    for event in store.memory_events.of(stored.key):
        clean = replace(
            event,
            context=redactor.text(event.context),
            session_id=redactor.text(event.session_id),
            before=redactor.snapshot(event.before) if event.before else "",
        )
        if clean != event:
            store.memory_events.redact(clean)
            found = True
    for edge in store.memory_edges.outgoing([stored.key]):
        if (reason := redactor.text(edge.reason)) != edge.reason:
            store.memory_edges.put(replace(edge, reason=reason))
            found = True
    return found


def _state(store: Store, stored: StoredMemory, memory: Memory) -> MemoryState:
    """Return the state that a memory gets after redaction.

    If redaction makes its content equal to the content of another memory, one of them is forgotten. This is the other
    memory if the redacted memory is protected, and otherwise the redacted memory.
    """
    same = store.memories.find_same(memory, stored.stats.promoted_from)
    if stored.state is not MemoryState.ACTIVE or same is None or same == stored.key:
        return stored.state
    if not stored.protected:
        return MemoryState.ARCHIVED
    store.memories.rewrite(replace(store.memories.load([same])[same], state=MemoryState.ARCHIVED))
    return MemoryState.ACTIVE
