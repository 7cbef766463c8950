"""Renewal: what newer rules know as a secret is taken out of memories that were stored before, and of their history."""

import time
from typing import Final

from msgspec.structs import replace

from ...archiver.redaction import VERSION, Redactor
from ...archiver.store import Store
from ...core.memory import Memory, MemoryState, StoredMemory
from ...core.progress import Progress, silent
from .changes import confidence_told, retold, written
from .secrecy import Secrecy

BUDGET: Final = 20.0
"""Seconds that one pass spends on it; what is left waits for the next."""
_AT_A_TIME: Final = 200


def renew(store: Store, redactor: Redactor, progress: Progress = silent, budget: float = BUDGET) -> int:
    """Look at such memories again, for `budget` seconds; how many of them held a secret.

    It is no edit: neither `updated` nor a new event tells of it, since what an event keeps is the secret. A person's
    own file in `.mnemonics` stays as it is.
    """
    secrecy, end, found, done = Secrecy(redactor), time.monotonic() + budget, 0, 0
    while time.monotonic() < end and (keys := store.memories.outdated(VERSION, _AT_A_TIME)):
        with store.transaction():
            found += sum(_renewed(store, secrecy, held) for held in store.memories.load(keys).values())
            store.memories.renewed(keys, VERSION)
        done += len(keys)
        progress(done, done + len(store.memories.outdated(VERSION, _AT_A_TIME)))
    return found


def _renewed(store: Store, secrecy: Secrecy, held: StoredMemory) -> bool:
    """Take the secrets out of a memory and of all that is told of it, inside a transaction; whether there were any."""
    memory = secrecy.memory(held.memory)
    if memory != held.memory:
        store.memories.rewrite(replace(held, memory=memory, state=_state(store, held, memory)))
        store.mnemonics.rehash(held.key, held.memory.content_hash, memory.content_hash)
    return _reworded(store, secrecy, held.key) or memory != held.memory


def _state(store: Store, held: StoredMemory, memory: Memory) -> MemoryState:
    """Two that differed in nothing but how their secret was written say the same now: one is put away, no golden rule
    for another memory.
    """
    taken = store.memories.claimed(memory, held.stats.promoted_from)
    if held.state is not MemoryState.ACTIVE or taken in {None, held.key}:
        return held.state
    if not held.protected or taken is None:
        return MemoryState.ARCHIVED
    store.memories.rewrite(replace(store.memories.load([taken])[taken], state=MemoryState.ARCHIVED))
    return MemoryState.ACTIVE


def _reworded(store: Store, secrecy: Secrecy, key: int) -> bool:
    found = False
    for event in store.memory_events.of(key):
        clean = replace(
            event,
            context=secrecy.text(event.context),
            session_id=secrecy.text(event.session_id),
            before=_before(secrecy, event.before),
        )
        if clean != event:
            store.memory_events.reword(clean)
            found = True
    for edge in store.memory_edges.leaving([key]):
        if (reason := secrecy.text(edge.reason)) != edge.reason:
            store.memory_edges.rewrite(replace(edge, reason=reason))
            found = True
    return found


def _before(secrecy: Secrecy, before: str) -> str:
    """What a memory said before an edit, as an event keeps it."""
    if not before:
        return before
    memory = retold(before)
    clean = secrecy.memory(memory)
    return before if clean == memory else written(clean, confidence_told(before))
