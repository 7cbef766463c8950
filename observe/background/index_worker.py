"""Index worker: a process that extracts observations, embeds texts and publishes the index while its caller continues.

The process ends and frees its memory when no work is left. It can be killed at any time. If the caller is killed, the
worker publishes its current results and ends. `worker_process.py` starts it.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import json

from ...archiver.copies.copy_verification import CopyVerifier
from ...archiver.copies.raw import RawArchive
from ...archiver.store import LEARNER, Store
from ...core.clock import has_elapsed
from ...core.errors import IndexDamaged, LeaseHeld, PalaverError, StoreCorrupt
from ...core.home import Home
from ...core.progress import never
from ...core.report import VerifiedCopies
from ...search.index.generation import Generations
from ...search.index.indexer import Indexer
from ...search.model.embedder import DEFAULT_MODEL, load
from .. import rules
from ..learn import learn
from .worker_process import WorkerResult

_LONGEST: Final = 60.0
"""Seconds after which a worker finishes the current batch and publishes its results."""
_BEHIND: Final = 300
"""Minimum number of unpublished changes for which a worker publishes, unless `settle` is set.

Search reads unpublished changes from the database.
"""
_VERIFY_COPIES: Final = 50 * 60 * 1000
"""Milliseconds between two verifications of raw copies. Idle workers start every hour, so each verifies some copies."""
_VERIFY_INDEX: Final = 24 * 3600 * 1000
"""Milliseconds between two checks of the whole index and database for damage."""
_ORPHANED: Final = 60.0
"""Seconds for which a worker runs on after its caller was killed, so that it can still complete the index."""
_NICE: Final = 10
"""Niceness of a worker, so that the user's programs and ingest runs have priority."""


def update_index(
    home: Home, model: str | None, *, settle: bool, should_stop: Callable[[], bool] = never
) -> WorkerResult:
    """Extract observations, embed texts and publish the index. With `settle`, publish all changes and check for damage.

    The function stops early after a minute, or when `should_stop` returns true, and publishes its results.

    Raises:
        LeaseHeld: Another process holds the learner's lease.
    """
    end = time.monotonic() + _LONGEST

    def is_late() -> bool:
        return should_stop() or time.monotonic() > end

    with Store.of(home) as store, store.leases.hold(LEARNER):
        generations = Generations(home.index)
        embedder = load(model or DEFAULT_MODEL)
        outdated, indexer = generations.is_outdated, Indexer(store, generations, embedder)
        _publish(store, indexer, 1 if outdated else _BEHIND)
        done = learn(home, store, indexer, store.leases.reporter(LEARNER), is_late)
        _publish(store, indexer, 1 if settle else _BEHIND)
        # Changes that arrive later are not in `seq`, so another worker follows. Exchanges that cannot be observed do
        # not count as unfinished work. Otherwise workers would be started forever.
        seq, lag = store.changes.last(), indexer.lag
        left = is_late() or store.exchanges.count_unobserved(rules.VERSION) > done.unobserved
        verified = verify_due(home, store, indexer) if settle and not left else VerifiedCopies()
        reindexed = outdated and not generations.is_outdated
        return WorkerResult(done.observed, done.embedded, seq, lag, left, verified, reindexed)


def verify_due(home: Home, store: Store, indexer: Indexer) -> VerifiedCopies:
    """Verify all data that is due: some raw copies each hour, the index and the database each day."""
    last = {stage.name: stage.succeeded or 0 for stage in store.stages.all()}
    verified = VerifiedCopies()
    if has_elapsed(_VERIFY_COPIES, last.get("verify-copies", 0)):
        verified = CopyVerifier(store, RawArchive(home.archive)).run()
        store.stages.note("verify-copies")
    if has_elapsed(_VERIFY_INDEX, last.get("verify", 0)):
        generations = Generations(home.index)
        try:
            current = generations.current()
            if current is not None:
                generations.verify(current)
        except IndexDamaged:
            indexer.rebuild()
            verified.repaired += 1
        damage = store.integrity.damage()
        store.stages.note("verify", [StoreCorrupt(each, hint="Run `palaver doctor`.") for each in damage[:1]])
        store.back_up()
    return verified


def _publish(store: Store, indexer: Indexer, behind: int) -> None:
    if indexer.lag >= behind:
        indexer.publish()
        store.stages.note("publish")


def serve(home: Home, model: str | None, *, settle: bool) -> None:
    """Run as an index worker, and write the result to standard output."""
    os.nice(_NICE)
    orphaned = threading.Event()
    threading.Thread(target=_exit_when_orphaned, args=(sys.stdin.fileno(), orphaned), daemon=True).start()
    try:
        result = update_index(home, model, settle=settle, should_stop=orphaned.is_set)
    except LeaseHeld:
        result = WorkerResult(left=True)
    except PalaverError as problem:
        sys.stdout.write(str(problem))
        sys.exit(1)
    if orphaned.is_set():
        os._exit(0)
    sys.stdout.write(json.encode(result).decode())


def _exit_when_orphaned(caller: int, orphaned: threading.Event) -> None:
    os.read(caller, 1)  # Use os.read, because the interpreter cannot exit while a thread reads from a file object.
    orphaned.set()
    time.sleep(_ORPHANED)
    os._exit(1)


if __name__ == "__main__":
    _root, _model, _settle = sys.argv[1:]
    serve(Home(Path(_root)), _model or None, settle=bool(_settle))
