"""Erasure: what was erased leaves everything that was made from it, and that nothing is left of it is verified."""

import shutil
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from ...archiver.copies.raw import RawArchive
from ...archiver.deletion.copy_eraser import CopyEraser
from ...archiver.deletion.deletions import Deletions
from ...archiver.ingest.ingest import Ingest
from ...archiver.reading.exclusion import Exclusion
from ...archiver.store import State, Store
from ...archiver.store.backups import Backups
from ...core.clock import now
from ...core.deletion import ErasureCheck
from ...core.errors import InvalidInput, SourceUnreadable
from ...core.home import Home
from ...core.memory import EventKind, MemoryState
from ...core.progress import Reporter, silent, stage
from ...core.query import Mode, Query
from ...search.archive_search import ArchiveSearch
from ...search.index.generation import Generations
from ...search.index.indexer import LEASE as INDEX
from ...search.index.indexer import Indexer
from ...search.model.embedder import DEFAULT_MODEL, load
from ...search.query.query_analysis import unquoted
from .erasure_check import scour

_PATIENCE: Final = 60.0
"""Seconds to wait for another process that builds an index."""
_READERS: Final = 5.0
"""Seconds to wait for processes that read the database: a search takes a part of one."""
_SEARCHES: Final = 6


def erase_expired(home: Home, store: Store) -> None:
    """Begin to erase what was forgotten so long ago that it cannot be had back. Under the archiver's lease."""
    raw = RawArchive(home.archive)
    for each in Deletions(store, raw).expired(now()):
        expire(store, raw, each.id)


def expire(store: Store, raw: RawArchive, number: int) -> None:
    """Begin to erase what was forgotten, and the memories that were put away with it. Under the archiver's lease.

    Raises `InvalidInput` when it was erased before, or never forgotten.
    """

    def also() -> None:
        held = store.memories.load(put_away(store, number)).values()
        store.memories.erase([each.key for each in held if each.state is MemoryState.ARCHIVED])

    Deletions(store, raw).expire(number, also)


def context(number: int) -> str:
    """How the events of memories name a forgetting."""
    return f"palaver forget, number {number}"


def put_away(store: Store, number: int) -> list[int]:
    """The memories that were put away by a forgetting."""
    return store.memory_events.in_context(context(number), EventKind.ARCHIVED)


def is_unfinished(store: Store) -> bool:
    """Whether something is being erased, or was when a process was killed."""
    return any(each.state is State.ERASING for each in store.tombstones.all())


class Finished(Struct, frozen=True):
    """Whether nothing is left of what was erased; the `problems` of copies that may still hold some of it."""

    done: bool
    problems: tuple[SourceUnreadable, ...] = ()


def finish(
    home: Home, store: Store, exclusion: Exclusion, model: str | None = None, report: Reporter = silent
) -> Finished:
    """Take what was erased out of copies, index, logs and free pages. Can be repeated.

    Under the archiver's lease. Raises `LeaseHeld` where another process goes on building an index.
    """
    raw = RawArchive(home.archive)
    problems = CopyEraser(store, raw).finish(partial(report, "CopyEraser"))
    # What else a pass tells of is told by the next one: it says nothing of what was erased.
    Ingest(store, raw, exclusion).run((), partial(report, "Reading"), budget=None)
    told = {each.path: each for each in (*problems, *Deletions(store, raw).drop_empty())}
    left = store.tombstones.unfinished()
    with stage(report, "Indexing"):
        renew_index(home, store, model)
    for log in home.root.glob(f"{home.log.name}*"):
        _empty(log)
    done = compact(store, whole=False)
    if done:
        with store.transaction():
            for each in store.tombstones.all():
                if each.state is State.ERASING and each.id not in left:
                    store.tombstones.become(each.id, State.ERASED)
        done = compact(store, whole=False)
    return Finished(done and not left, tuple(told.values()))


def renew_index(home: Home, store: Store, model: str | None) -> None:
    """Make the index anew and leave no file of any other; searches are answered from the store meanwhile."""
    with store.leases.hold(INDEX, _PATIENCE):
        for path in home.index.iterdir() if home.index.is_dir() else ():
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
    Indexer(store, Generations(home.index), load(model or DEFAULT_MODEL)).publish()


def compact(store: Store, *, whole: bool) -> bool:
    """Empty the database's free pages and log, and remove its backups; False while another process goes on reading."""
    Backups(store.home).remove()
    end = time.monotonic() + _READERS
    while not store.tombstones.compact(whole=whole):
        whole = False
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


def prove(home: Home, model: str | None, texts: Sequence[str], gone: Collection[str]) -> ErasureCheck:
    """Look for texts of what was erased in every byte of the home, and search for them.

    `gone` are the ids of what was erased: items and sessions.
    """
    scoured = scour(home.root, texts)
    proof = ErasureCheck(
        len(texts), scoured.files, scoured.size, found=list(scoured.found), unread=list(scoured.unread)
    )
    with ArchiveSearch(home, model) as layers:
        for text in texts[:: max(1, len(texts) // _SEARCHES)][:_SEARCHES]:
            for mode in (Mode.TEXT, Mode.VECTOR):
                with suppress(InvalidInput):
                    results = layers.search(Query.parse(unquoted(text), mode=mode))
                    proof.searches += mode.value in results.engines
                    proof.hits += [hit.id for hit in results.hits if hit.id in gone or hit.session_id in gone]
    return proof


def _empty(log: Path) -> None:
    with suppress(FileNotFoundError), log.open("r+b") as file:
        file.truncate()
