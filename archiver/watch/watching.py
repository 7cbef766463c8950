"""Watching: taking up what is written, while it is written. Events are hints, the regular look is the truth."""

import time
from typing import Final, Protocol

from ...core.errors import LeaseHeld
from ...core.report import Compression, Pass
from ..copies.compressor import CopyCompressor
from ..copies.raw import RawArchive, Stat
from ..ingest.ingest import Ingest
from ..reading.exclusion import Exclusion
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
_HEARD: Final = 3.0
"""Seconds after which a change should have been heard of."""
_ANEW: Final = 60.0
"""Seconds until listening may begin anew again, because something was not heard of."""
_JUMP: Final = 5.0
"""Seconds by which the two clocks may part between two rounds: more means sleep, or that somebody set the clock."""
_PATIENCE: Final = 0.5
"""Seconds to wait for another process that archives; then it is tried again after the next look."""
_COMPRESSION: Final = 1.0
"""Seconds of compression at a time."""


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
    ) -> None:
        self._raw = raw
        self._store, self._scan, self._events, self._clock = store, scan, events, clock
        self._ingest, self._compressor = Ingest(store, raw, exclusion), CopyCompressor(store, raw)
        self._roots = self._folders = frozenset[Folder]()
        self._failed = list[Seen]()
        self._next = self._earliest = self._retry = self._anew = 0.0
        self._regular = False
        """Whether the next look is the regular one, before which everything that changes should be heard of."""
        self._thorough = clock.monotonic() + _THOROUGH
        self._apart = clock.wall() - clock.monotonic()

    @property
    def folders(self) -> int:
        """How many folders are followed."""
        return len(self._folders)

    def heed(self, exclusion: Exclusion) -> None:
        """Go on by other settings, and look at everything again by them."""
        self._ingest = Ingest(self._store, self._raw, exclusion)
        self._scan.forget()
        self._next, self._regular = 0.0, False

    def round(self) -> Pass | None:
        """Wait for a hint for a second at most, and take up what changed; None when nothing did."""
        heard = self._events.wait() if self._next else Heard()
        seen = self._look(heard)
        return self._take_up(seen) if seen else None

    def compress(self) -> Compression | None:
        """Compress some quiet copies; return None while another process archives."""
        try:
            with self._store.leases.hold(ARCHIVER):
                return self._compressor.run(budget=_COMPRESSION)
        except LeaseHeld:
            return None

    def _look(self, heard: Heard) -> list[Seen]:
        now = self._clock.monotonic()
        if heard.lost or self._jumped() or self._scan.roots() != self._roots:
            return self._look_everywhere(now)
        if now >= self._next:
            unheard = self._regular and not heard.paths and now < min(self._thorough, self._retry)
            seen = self._look_everywhere(now)
            if unheard and any(map(self._is_unheard, seen)):
                self._listen_anew(now)
            return seen
        if not heard.paths:
            return []
        seen, explained = self._scan.look_at(heard.paths)
        if not explained and now >= self._earliest:
            return self._look_everywhere(now)
        if not explained and self._earliest < self._next:
            self._next, self._regular = self._earliest, False
        return seen

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
        self._regular = True
        self._earliest = done + _HINTED_SHARE * (done - now)
        self._next = done + max(_DEAF if self._events.deaf else SCAN, _SHARE * (done - now))
        folders = self._scan.folders()
        if folders != self._folders:
            self._folders = folders
            self._events.follow(folders)
            # What is written before they are listened to is heard by nobody.
            self._next, self._regular = done, False
        return seen

    def _is_unheard(self, seen: Seen) -> bool:
        """Whether a file changed so long ago that it should have been heard of."""
        state = seen.state
        return isinstance(state, Stat) and self._clock.wall() - state.mtime / 1e9 > _HEARD

    def _listen_anew(self, now: float) -> None:
        """A folder that was made when the system's limit was reached is never listened to, and nothing says so.

        Listening begins again, which says when it cannot; then everything is looked at as where nothing is heard.
        """
        if now >= self._anew and not self._events.deaf:
            self._anew = now + _ANEW
            self._events.close()
            self._next, self._regular = now, False

    def _jumped(self) -> bool:
        before, self._apart = self._apart, self._clock.wall() - self._clock.monotonic()
        return abs(self._apart - before) > _JUMP

    def _take_up(self, seen: list[Seen]) -> Pass | None:
        try:
            with self._store.leases.hold(ARCHIVER, _PATIENCE):
                result = self._ingest.run(each.transcript for each in seen)
        except LeaseHeld:
            self._next, self._regular = self._clock.monotonic() + _DEAF, False
            return None
        self._scan.keep(seen)
        failed = {problem.path for problem in result.problems}
        self._failed += [each for each in seen if each.transcript.path in failed]
        self._store.stages.note("archive", result.problems)
        return result
