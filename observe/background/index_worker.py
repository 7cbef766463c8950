"""Index worker: a process that extracts observations, embeds texts and publishes the index in the background.

The caller starts it, continues its work, stops it and reads its result. The process ends and frees its memory when no
work is left. It can be killed at any time. If the caller is killed, the worker publishes its current results and
ends.

Importing this module does not load the libraries for indexing. In a server, the same indexing runs in the background,
so that the server can reply as soon as documents are queued.
"""

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct, field, json

from ...archiver.copies.raw_copy import RawArchive
from ...archiver.copies.verification import CopyVerifier
from ...archiver.store import LEARNER, Store
from ...core.conversation import has_elapsed
from ...core.errors import IndexDamaged, LeaseHeld, PalaverError, StoreCorrupt
from ...core.home import Home
from ...core.reports import VerifiedCopies
from ...core.runtime import never
from ...search.index.generation import Generations
from ...search.index.indexer import Indexer
from ...search.model.embedder import DEFAULT_MODEL, load
from .. import rules
from ..pipeline import learn

_MODULE: Final = f"{__package__}.index_worker"
_RETRY: Final = 5.0
"""Seconds between attempts while another process holds the learner's lease."""
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


class WorkerResult(Struct, frozen=True):
    """Result of one index worker."""

    observed: int = 0
    embedded: int = 0
    seq: int = 0
    """Sequence number of the last change that the worker processed."""
    lag: int = 0
    """Number of changes that are not in the index."""
    left: bool = False
    """True if the worker stopped before it finished all work."""
    verified: VerifiedCopies = field(default_factory=VerifiedCopies)
    reindexed: bool = False
    """True if an index from another version of Palaver was rebuilt."""


class IndexWorker:
    """Index worker process of one home. It can be started repeatedly, but only one process runs at a time."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def busy(self) -> bool:
        """True if a worker was started and its result has not been returned yet."""
        return self._process is not None

    def start(self, model: str | None, *, settle: bool) -> None:
        """Start a worker. Raises `OSError` if the process cannot be started."""
        # Use a separate process group, so that Ctrl-C reaches only the caller. The worker does not inherit locks.
        command = [sys.executable, "-P", "-m", _MODULE, str(self._home.root), model or "", "settle" * settle]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)

    def result(self) -> WorkerResult | PalaverError | None:
        """Return the result or failure of the worker, or None while it runs."""
        return None if self._process is None or self._process.poll() is None else self.wait()

    def wait(self) -> WorkerResult | PalaverError:
        """Wait until the worker ends, and return its result or failure."""
        assert self._process is not None
        process, self._process = self._process, None
        assert process.stdout is not None
        output = process.stdout.read()  # Closing stdin, as `communicate` does, would make the worker stop early.
        process.communicate()
        if process.returncode == 0:
            return json.decode(output, type=WorkerResult)
        reason = output.decode("utf-8", "replace") or f"the index worker exited with status {process.returncode}"
        return PalaverError(reason, hint="See standard error of `palaver watch`.")

    def stop(self) -> None:
        """Kill the worker. The next worker continues the work."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


class BackgroundIndexer:
    """Indexer that runs index workers in a daemon thread until no work is left.

    The workers end shortly after this process ends.
    """

    def __init__(self, home: Home, model: str | None) -> None:
        """Prepare indexing with an embedding model. If `model` is None, use the packaged model."""
        self._worker, self._model = IndexWorker(home), model
        self._lock = threading.Lock()
        self._wanted = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Index all queued content in the background, with a worker that starts after this call."""
        with self._lock:
            self._wanted = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="background-indexer", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while self._is_wanted():
            while self._index():
                pass

    def _is_wanted(self) -> bool:
        with self._lock:
            is_due, self._wanted = self._wanted, False
            if not is_due:
                self._thread = None
        return is_due

    def _index(self) -> bool:
        """Run one worker. Return True if another worker is needed."""
        try:
            self._worker.start(self._model, settle=True)
            result = self._worker.wait()
        except OSError as error:
            result = PalaverError(f"no process can be started: {error}")
        if isinstance(result, PalaverError):
            logging.getLogger(__name__).warning("Background indexing failed: %s", result)
            return False
        if result.left and not result.seq:  # Another process holds the lease.
            time.sleep(_RETRY)
        return result.left


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
        store.stages.note("verify", [StoreCorrupt(loss, hint="Run `palaver doctor`.") for loss in damage[:1]])
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
