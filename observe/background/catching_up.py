"""Catching up: observing, embedding and publishing in a process of its own, while the archiver goes on listening.

That process ends when there is nothing left to do, and its memory with it; it may be killed at any time. When the
archiver is killed it publishes what it has and ends.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from msgspec import Struct, field, to_builtins

from ...archiver.copies.raw import RawArchive
from ...archiver.copies.verification import CopyVerifier
from ...archiver.store import LEARNER, Store
from ...core.clock import now
from ...core.errors import IndexDamaged, LeaseHeld, PalaverError, StoreCorrupt
from ...core.home import Home
from ...core.progress import never
from ...core.report import VerifiedCopies
from ...search.index.generation import Generations
from ...search.index.indexer import Indexer
from ...search.model.embedder import DEFAULT_MODEL, load
from .. import rules
from ..round import learn

_ROUND: Final = 60.0
"""Seconds after which a round ends with the batch in hand, so that what it made is published."""
_BEHIND: Final = 300
"""Changes that an index may be behind while more of them come: they are searched all the same, in memory."""

_VERIFY_COPIES: Final = 50 * 60 * 1000
_VERIFY_INDEX: Final = 24 * 3600 * 1000
"""Milliseconds from the end of one verification to the next: of some copies, and of all of the index and the database.
Rounds start an hour apart, and each one verifies copies, however long the previous verification took.
"""
_LAST: Final = 60.0
"""Seconds for which a round outlives who began it: it publishes what it has, or an archiver that is killed every few
seconds would never have an index.
"""
_NICE: Final = 10
"""Whatever the person does comes first, and so does taking up."""


class Caught(Struct, frozen=True):
    """What one round did. `seq` is the last change that it saw, `left` whether it broke off with work to do.

    `lag` is how many changes the index is behind, `verified` the result of the verification. `reindexed` is whether an
    index of another version of Palaver was made anew.
    """

    observed: int = 0
    embedded: int = 0
    seq: int = 0
    lag: int = 0
    left: bool = False
    verified: VerifiedCopies = field(default_factory=VerifiedCopies)
    reindexed: bool = False

    @classmethod
    def read(cls, told: bytes) -> Self:
        """What a process wrote that caught up."""
        fields = json.loads(told)
        verified = VerifiedCopies(**fields.pop("verified"))
        return cls(**fields, verified=verified)

    def write(self) -> str:
        """In one line, for the process that began the round."""
        return json.dumps(to_builtins(self))


def catch_up(home: Home, model: str | None, *, settle: bool, enough: Callable[[], bool] = never) -> Caught:
    """One round. With `settle` even the last few changes are published. Raises `LeaseHeld`.

    It breaks off, and publishes what it made, when there was `enough` of it.
    """
    end = time.monotonic() + _ROUND

    def late() -> bool:
        return enough() or time.monotonic() > end

    with Store.open(home.database) as store, store.leases.hold(LEARNER):
        generations = Generations(home.index)
        embedder = load(model or DEFAULT_MODEL)
        outdated, indexer = generations.is_outdated, Indexer(store, generations, embedder)
        _publish(store, indexer, 1 if outdated else _BEHIND)
        done = learn(home, store, indexer, enough=late)
        _publish(store, indexer, 1 if settle else _BEHIND)
        # What came in meanwhile is not lost sight of, nor what comes in from here on, of which `seq` does not tell.
        # What cannot be observed does not keep it going for ever.
        seq, lag = store.changes.last(), indexer.lag
        left = late() or store.exchanges.count_unobserved(rules.VERSION) > done.unobserved
        verified = verify_due(home, store, indexer) if settle and not left else VerifiedCopies()
        anew = outdated and not generations.is_outdated
        return Caught(done.observed, done.embedded, seq, lag, left, verified, reindexed=anew)


def verify_due(home: Home, store: Store, indexer: Indexer) -> VerifiedCopies:
    """Verify what is due: some copies every hour, the index and the database every day."""
    ran = {stage.name: stage.succeeded or 0 for stage in store.stages.all()}
    verified = VerifiedCopies()
    if ran.get("verify-copies", 0) < now() - _VERIFY_COPIES:
        verified = CopyVerifier(store, RawArchive(home.archive)).run()
        store.stages.note("verify-copies")
    if ran.get("verify", 0) < now() - _VERIFY_INDEX:
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


class Helper:
    """The process that catches up; one at a time."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def busy(self) -> bool:
        """Whether a round was begun whose end was not asked for yet."""
        return self._process is not None

    def begin(self, model: str | None, *, settle: bool) -> None:
        """Begin a round. Raises `OSError` where no process can be started."""
        # In a group of its own, so that Ctrl-C reaches this process alone. No lock of ours is inherited.
        command = [sys.executable, "-P", "-m", __name__, str(self._home.root), model or "", "settle" * settle]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)

    def ended(self) -> Caught | PalaverError | None:
        """Return what the round did, or why it failed; None while it runs."""
        return None if self._process is None or self._process.poll() is None else self.wait()

    def wait(self) -> Caught | PalaverError:
        """Wait until the round ends. Return what it did, or why it failed."""
        assert self._process is not None
        process, self._process = self._process, None
        assert process.stdout is not None
        told = process.stdout.read()  # `communicate` would close stdin first, and the round break off
        process.communicate()
        if process.returncode == 0:
            return Caught.read(told)
        reason = told.decode("utf-8", "replace") or f"the process that learns ended with {process.returncode}"
        return PalaverError(reason, hint="See standard error of `palaver watch`.")

    def stop(self) -> None:
        """End the round, whatever it is at. It goes on where it was with the next one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _end_with(parent: int, alone: threading.Event) -> None:
    # Not through a file object: the interpreter cannot end while a thread reads from one.
    os.read(parent, 1)
    alone.set()
    time.sleep(_LAST)
    os._exit(1)


def serve(home: Home, model: str | None, *, settle: bool) -> None:
    """One round for the process that started this one, which is told on standard output."""
    os.nice(_NICE)
    alone = threading.Event()
    threading.Thread(target=_end_with, args=(sys.stdin.fileno(), alone), daemon=True).start()
    try:
        caught = catch_up(home, model, settle=settle, enough=alone.is_set)
    except LeaseHeld:
        caught = Caught(left=True)
    except PalaverError as problem:
        sys.stdout.write(str(problem))
        sys.exit(1)
    if alone.is_set():
        os._exit(0)  # nobody is there to be told
    sys.stdout.write(caught.write())


if __name__ == "__main__":
    _root, _model, _settle = sys.argv[1:]
    serve(Home(Path(_root)), _model or None, settle=bool(_settle))
