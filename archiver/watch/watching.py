"""Watching: taking up what is written, while it is written. Events are hints, the regular look is the truth."""

import time
from typing import Final, Protocol

from ...core.errors import LeaseHeld
from ...core.report import Pass, Sealing
from ..copies.raw import RawArchive
from ..copies.sealing import Sealer
from ..intake.ingest import Ingest
from ..privacy.exclusion import Exclusion
from ..store import ARCHIVER, Store
from .events import Events, Heard
from .scanning import Folder, Scan, Seen

SCAN: Final = 15.0
"""Seconds between two looks at every transcript."""
_DEAF: Final = 1.0
"""The same, where changes can happen without an event."""
_SHARE: Final = 20
"""How many times longer than a look the time until the next one is at least, so that a slow folder costs little."""
_HINTED_SHARE: Final = 4
"""The same after a hint that only a look at everything can follow."""
_RETRY: Final = 60.0
"""Seconds after which files that could not be read are tried again."""
_THOROUGH: Final = 3600.0
"""Seconds after which every transcript is compared with the archive itself, and not with what is remembered of it."""
_JUMP: Final = 5.0
"""Seconds by which the two clocks may part between two rounds: more means sleep, or that somebody set the clock."""
_PATIENCE: Final = 0.5
"""Seconds to wait for another process that archives; then it is tried again after the next look."""
_SEALING: Final = 1.0
"""Seconds of sealing at a time."""


class Clock(Protocol):
    """Two clocks, in seconds."""

    def monotonic(self) -> float:
        """Never goes back, and may stand still while the machine sleeps."""
        ...

    def wall(self) -> float:
        """The time of day, which anybody can set."""
        ...


class SystemClock:
    """The clocks of this machine."""

    monotonic = staticmethod(time.monotonic)
    wall = staticmethod(time.time)


class Watch:
    """Follows the transcripts of this user into one store."""

    def __init__(
        self,
        store: Store,
        raw: RawArchive,
        scan: Scan,
        events: Events,
        clock: Clock,
        exclusion: Exclusion | None = None,
        *,
        mask: bool = False,
    ) -> None:
        self._raw = raw
        self._store, self._scan, self._events, self._clock = store, scan, events, clock
        self._ingest, self._sealer = Ingest(store, raw, exclusion, mask=mask), Sealer(store, raw)
        self._roots = self._folders = frozenset[Folder]()
        self._failed = list[Seen]()
        self._next = self._earliest = self._retry = 0.0
        self._thorough = clock.monotonic() + _THOROUGH
        self._apart = clock.wall() - clock.monotonic()

    @property
    def folders(self) -> int:
        """How many folders are followed."""
        return len(self._folders)

    def heed(self, exclusion: Exclusion, *, mask: bool) -> None:
        """Go on by other settings, and look at everything again by them."""
        self._ingest = Ingest(self._store, self._raw, exclusion, mask=mask)
        self._scan.forget()
        self._next = 0.0

    def round(self) -> Pass | None:
        """Wait for a hint for a second at most, and take up what changed; None when nothing did."""
        heard = self._events.wait() if self._next else Heard()
        seen = self._look(heard)
        return self._take_up(seen) if seen else None

    def seal(self) -> Sealing | None:
        """Seal a little of what went quiet; None while another process archives."""
        try:
            with self._store.leases.hold(ARCHIVER):
                return self._sealer.run(budget=_SEALING)
        except LeaseHeld:
            return None

    def _look(self, heard: Heard) -> list[Seen]:
        now = self._clock.monotonic()
        if heard.lost or self._jumped() or self._scan.roots() != self._roots or now >= self._next:
            return self._look_everywhere(now)
        if not heard.paths:
            return []
        known = self._scan.look_at(heard.paths)
        if known is None and now >= self._earliest:
            return self._look_everywhere(now)
        if known is None:
            self._next = self._earliest
        return known or []

    def _look_everywhere(self, now: float) -> list[Seen]:
        if now >= self._thorough:
            self._scan.forget()
            self._thorough = now + _THOROUGH
        if now >= self._retry:
            self._scan.forget(each.transcript.path for each in self._failed)
            self._failed, self._retry = [], now + _RETRY
        self._roots = self._scan.roots()
        seen = self._scan.look()
        done = self._clock.monotonic()
        self._earliest = done + _HINTED_SHARE * (done - now)
        self._next = done + max(_DEAF if self._events.deaf else SCAN, _SHARE * (done - now))
        folders = self._scan.folders()
        if folders != self._folders:
            self._folders = folders
            self._events.follow(folders)
            # What is written before they are listened to is heard by nobody.
            self._next = done
        return seen

    def _jumped(self) -> bool:
        before, self._apart = self._apart, self._clock.wall() - self._clock.monotonic()
        return abs(self._apart - before) > _JUMP

    def _take_up(self, seen: list[Seen]) -> Pass | None:
        try:
            with self._store.leases.hold(ARCHIVER, _PATIENCE):
                result = self._ingest.run(each.transcript for each in seen)
        except LeaseHeld:
            self._next = self._clock.monotonic() + _DEAF
            return None
        self._scan.keep(seen)
        failed = {problem.path for problem in result.problems}
        self._failed += [each for each in seen if each.transcript.path in failed]
        with self._store.transaction():
            self._store.stages.note("archive", result.problems)
        return result
