"""Erasure of deleted content from copies, index, logs, backups and free database pages."""

import shutil
import time
from contextlib import suppress
from functools import partial
from typing import Final

from msgspec import Struct

from ...archiver.copies.raw import RawArchive
from ...archiver.deletion.copy_eraser import CopyEraser
from ...archiver.deletion.deletions import Deletions
from ...archiver.ingest.ingest import Ingest
from ...archiver.reading.exclusion import Exclusion
from ...archiver.store import Store
from ...archiver.store.backups import Backups
from ...core.clock import now
from ...core.deletion import DeletionState
from ...core.errors import SourceUnreadable
from ...core.home import Home
from ...core.memory import EventKind, MemoryState
from ...core.progress import Reporter, silent, stage
from ...search.index.generation import Generations
from ...search.index.indexer import LEASE as INDEX
from ...search.index.indexer import Indexer
from ...search.model.embedder import DEFAULT_MODEL, load

_PATIENCE: Final = 60.0
"""Seconds to wait for another process that builds an index."""
_READERS: Final = 5.0
"""Seconds to wait for processes that read the database."""


class ErasureResult(Struct, frozen=True):
    """Result of an erasure.

    `done` is true if no erased content remains. `problems` describe copies that still contain erased content.
    """

    done: bool
    problems: tuple[SourceUnreadable, ...] = ()


def erase_expired(home: Home, store: Store) -> None:
    """Begin to erase deletions that can no longer be undone. Requires the archiver's lease."""
    raw = RawArchive(home.archive)
    for each in Deletions(store, raw).expired(now()):
        expire(store, raw, each.id)


def expire(store: Store, raw: RawArchive, number: int) -> None:
    """Begin to erase a deletion and its memories. Requires the archiver's lease.

    Raises:
        InvalidInput: The deletion does not exist, or was already undone or erased.
    """

    def delete_memories() -> None:
        memories = store.memories.load(memories_of(store, number)).values()
        store.memories.delete([each.key for each in memories if each.state is MemoryState.ARCHIVED])

    Deletions(store, raw).expire(number, delete_memories)


def context(number: int) -> str:
    """Return the text that identifies a deletion in the `context` of memory events."""
    return f"palaver forget, number {number}"


def memories_of(store: Store, number: int) -> list[int]:
    """Return the keys of the memories that a deletion removed."""
    return store.memory_events.in_context(context(number), EventKind.ARCHIVED)


def is_unfinished(store: Store) -> bool:
    """Return whether an erasure was begun but not finished."""
    return any(each.state is DeletionState.ERASING for each in store.tombstones.all())


def finish(
    home: Home, store: Store, exclusion: Exclusion, model: str | None = None, report: Reporter = silent
) -> ErasureResult:
    """Remove erased content from all files. Requires the archiver's lease. Repeated calls are harmless.

    Raises:
        LeaseHeld: Another process is building an index.
    """
    raw = RawArchive(home.archive)
    problems = CopyEraser(store, raw).finish(partial(report, "Erasing"))
    # Other problems of this ingest run do not concern the erasure. The next run reports them.
    Ingest(store, raw, exclusion).run((), partial(report, "Reading"), budget=None)
    left = store.tombstones.unfinished()
    with stage(report, "Indexing"):
        _rebuild_index(home, store, model)
    for log in home.root.glob(f"{home.log.name}*"):
        with suppress(FileNotFoundError), log.open("r+b") as file:
            file.truncate()
    done = compact(store, whole=False)
    if done:
        with store.transaction():
            for each in store.tombstones.all():
                if each.state is DeletionState.ERASING and each.id not in left:
                    store.tombstones.set_state(each.id, DeletionState.ERASED)
        done = compact(store, whole=False)
    return ErasureResult(done and not left, tuple(problems))


def compact(store: Store, *, whole: bool) -> bool:
    """Clear free database pages and the write-ahead log, and delete database backups.

    With `whole`, rewrite the database file. Return False if another process is reading the database.
    """
    Backups(store.home).remove()
    end = time.monotonic() + _READERS
    while not store.tombstones.compact(whole=whole):
        whole = False
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def _rebuild_index(home: Home, store: Store, model: str | None) -> None:
    """Delete every index file, and rebuild the index. Searches use the database in the meantime."""
    with store.leases.hold(INDEX, _PATIENCE):
        for path in home.index.iterdir() if home.index.is_dir() else ():
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    Indexer(store, Generations(home.index), load(model or DEFAULT_MODEL)).publish()
