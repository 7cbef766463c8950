"""Watching: the background archiver. What is written is searchable within seconds, and learned from soon after.

Lines are taken up here; observing, embedding and publishing are done by a process beside, so that they never make a new
line wait.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Final

from ...archiver.copies.raw import RawArchive
from ...archiver.reading.exclusion import Exclusion
from ...archiver.store import ARCHIVER, WATCHER, Store
from ...archiver.watch.events import Events
from ...archiver.watch.scanning import Scan
from ...archiver.watch.watching import Clock, SystemClock, Watch
from ...core.errors import LeaseHeld, PalaverError
from ...core.home import Home
from ...core.report import Pass
from ...search.index.generation import Generations
from ..deletion.erasure import erase_expired, finish, is_unfinished
from .catching_up import Caught, Helper
from .learning import Learning

_COMPRESS: Final = 3600.0
"""Seconds between two looks for copies that went quiet, and for what can no longer be had back."""
_HEARTBEAT: Final = 60.0
"""Seconds between two notes that the archiver lives."""
_ERASING: Final = 60.0
"""Seconds to wait for another process that archives."""
_BACK_OFF: Final = (1.0, 60.0)
"""Seconds until the first, and the longest until any other, attempt after a failure."""

Teller = Callable[[str, Mapping[str, object]], None]
"""Hears what happened: its name and its numbers, and nothing that was said."""


class Watcher:
    """Archives for ever. One at a time for each home; a second raises `LeaseHeld`."""

    def __init__(
        self,
        home: Home,
        events: Events,
        tell: Teller,
        model: Callable[[], str | None] = lambda: None,
        clock: Clock | None = None,
        wait: Callable[[float], None] = time.sleep,
        exclude: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        """`model` is asked before each round of embedding; None is the packaged one.

        Folders that match a pattern in `exclude` are left alone; raises `ConfigInvalid` for a bad pattern. It is
        asked in each round.
        """
        self._exclude, self._excluded = exclude, exclude()
        self._exclusion = Exclusion(self._excluded)
        self._home, self._events, self._tell, self._model = home, events, tell, model
        self._scan, self._helper = Scan(), Helper(home)
        self._clock, self._wait = clock or SystemClock(), wait
        self._delay = _BACK_OFF[0]
        self._heartbeat = self._compress = 0.0
        self._alone = False
        self._told = dict[str, str]()
        """What was told last of each stage that does not work."""

    def run(self) -> None:
        """Watch until interrupted. A full disk, or a folder that may not be written to, is told and tried again."""
        try:
            while True:
                try:
                    self._watch()
                except (PalaverError, OSError) as problem:
                    if isinstance(problem, LeaseHeld) and not self._alone:
                        raise
                    self._tell_once("watch", problem, self._delay)
                    self._wait(self._delay)
                    self._delay = min(self._delay * 2, _BACK_OFF[1])
        finally:
            self._helper.stop()
            self._events.close()

    def _watch(self) -> None:
        self._alone = False
        self._home.make()
        self._scan.forget()
        with Store.create(self._home.database) as store, store.leases.hold(WATCHER, patience=1.0):
            self._alone = True
            raw = RawArchive(self._home.archive)
            self._erase(store, _ERASING)
            watch = Watch(store, raw, self._scan, self._events, self._clock, self._exclusion)
            learning = Learning(store, self._helper, self._model, self._clock)
            if "watch" not in self._told:
                self._tell("watching", {})
            while True:
                self._round(store, watch, learning)
                self._delay = _BACK_OFF[0]
                if self._told.pop("watch", None):
                    self._tell("watching", {})

    def _tell_once(self, stage: str, problem: PalaverError | OSError, again_in: float) -> None:
        """Tell what went wrong and what to do next, unless that was the last thing told of this stage."""
        told = problem.told if isinstance(problem, PalaverError) else str(problem)
        if self._told.get(stage) != told:
            self._told[stage] = told
            self._tell("failed", {"problem": told, "again_in": round(again_in)})

    def _erase(self, store: Store, patience: float = 0.0) -> None:
        """What can no longer be had back, and what was being erased when a process was killed.

        It waits for the next time while another process archives or builds an index, and where it fails, which is told.
        """
        if not store.tombstones.exist():
            return
        try:
            with suppress(LeaseHeld), store.leases.hold(ARCHIVER, patience):
                erase_expired(self._home, store)
                unfinished = is_unfinished(store)
                problems = finish(self._home, store, self._exclusion, self._model()).problems if unfinished else ()
                stages = {f"erase {problem.path}": problem for problem in problems}
                for solved in [each for each in self._told if each.startswith("erase") and each not in stages]:
                    del self._told[solved]
                for stage, problem in stages.items():
                    self._tell_once(stage, problem, _COMPRESS)
        except (PalaverError, OSError) as problem:
            self._tell_once("erase", problem, _COMPRESS)

    def _round(self, store: Store, watch: Watch, learning: Learning) -> None:
        self._home.check()
        self._heed(watch)
        taken = watch.round()
        if taken is not None:
            self._tell_of_pass(taken)
        caught = learning.round()
        if caught is not None:
            self._tell_of_round(store, caught, learning.again_in)
        now = self._clock.monotonic()
        if now >= self._heartbeat:
            self._heartbeat = now + _HEARTBEAT
            store.stages.note("watch")
            Generations(self._home.index).sweep()
        if now >= self._compress and learning.quiet:
            self._compress_some(store, watch, now)

    def _heed(self, watch: Watch) -> None:
        """Go on by what the settings say now."""
        excluded = self._exclude()
        if excluded != self._excluded:
            self._excluded, self._exclusion = excluded, Exclusion(excluded)
            watch.heed(self._exclusion)
            self._tell("settings", {"exclude": len(excluded)})

    def _compress_some(self, store: Store, watch: Watch, now: float) -> None:
        done = watch.compress()
        if done is None:
            return
        if not done.waiting:
            self._compress = now + _COMPRESS
            self._erase(store)
        if done.compressed or done.problems:
            self._tell("compressed", {"files": done.compressed, "problems": len(done.problems)})
        store.stages.note("compress", done.problems)

    def _tell_of_pass(self, done: Pass) -> None:
        if done.changed or done.problems:
            numbers = {"files": done.changed, "lines": done.lines, "exchanges": done.exchanges}
            self._tell("archived", {**numbers, "problems": len(done.problems)})

    def _tell_of_round(self, store: Store, ended: Caught | PalaverError, again_in: float) -> None:
        problems = [ended] if isinstance(ended, PalaverError) else []
        store.stages.note("learn", problems)
        if isinstance(ended, PalaverError):
            self._tell_once("learn", ended, again_in)
            return
        self._told.pop("learn", None)
        if ended.observed or ended.embedded:
            self._tell("learned", {"observed": ended.observed, "embedded": ended.embedded, "behind": ended.lag})
        if ended.reindexed:
            self._tell("reindexed", {"made_by": "another version of Palaver"})
        if ended.verified.repaired or ended.verified.damaged:
            done = ended.verified
            self._tell("verified", {"copies": done.checked, "repaired": done.repaired, "damaged": done.damaged})
