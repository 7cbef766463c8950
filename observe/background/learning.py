"""Learning: when what was taken up is observed, embedded and published. The store's changes tell, whoever made them."""

from collections.abc import Callable
from typing import Final

from ...archiver.store import Store
from ...archiver.watch.watching import Clock
from ...core.errors import PalaverError
from .catching_up import Caught, Helper

_QUIET: Final = 4.0
"""Seconds without a change after which it is learned from."""
_LONG: Final = 30.0
"""The same where there always is a change: a round costs a second, and an exchange that grows is observed anew."""
_MANY: Final = 300
"""Changes that are learned from at once."""
_SETTLED: Final = 60.0
"""Seconds without a change after which even a few of them are published."""
_IDLE: Final = 3600.0
"""Seconds after which a round begins though nothing changed: it looks for damage."""
_BACK_OFF: Final = (5.0, 300.0)
"""Seconds until the first, and the longest until any other, attempt after a round that failed."""


class Learning:
    """Begins rounds of catching up, and hears how they ended."""

    def __init__(self, store: Store, helper: Helper, model: Callable[[], str | None], clock: Clock) -> None:
        """`model` is asked before each round; None is the packaged one."""
        self._store, self._helper, self._model, self._clock = store, helper, model, clock
        self._done, self._lag, self._at_once = -1, 0, False
        """The last change that was learned from, how far the index was behind then, and whether a round broke off."""
        self._last, self._moved = -1, clock.monotonic()
        self._since: float | None = None
        self._again, self._delay = 0.0, _BACK_OFF[0]
        self._idle = clock.monotonic() + _IDLE

    @property
    def quiet(self) -> bool:
        """Whether nothing changed for a while and there is nothing to do."""
        idle = not self._helper.busy and self._last == self._done
        return idle and self._clock.monotonic() - self._moved >= _QUIET

    @property
    def again_in(self) -> float:
        """Seconds until a round may begin."""
        return max(0.0, self._again - self._clock.monotonic())

    def round(self) -> Caught | PalaverError | None:
        """Begin what is due; what the round before did, or why it failed, when it ended just now."""
        now = self._clock.monotonic()
        ended = self._helper.ended()
        if ended is not None:
            self._take_note(ended, now)
        self._follow(now)
        if not self._helper.busy and now >= self._again:
            if (self._last > self._done and self._is_due(now)) or self._store.documents.count_queued():
                self._begin(settle=False)
            elif self._last == self._done and self._lag and now - self._moved >= _SETTLED:
                self._again = now + _SETTLED
                self._begin(settle=True)
            elif self.quiet and now >= self._idle:
                self._idle = now + _IDLE
                self._begin(settle=True)
        return ended

    def _follow(self, now: float) -> None:
        last = self._store.changes.last()
        if last != self._last:
            self._last, self._moved = last, now
            self._since = self._since or now

    def _is_due(self, now: float) -> bool:
        long = self._since is not None and now - self._since >= _LONG
        # An archiver that is killed every few seconds learns, too.
        first = self._done < 0
        many = self._last - self._done >= _MANY
        return first or self._at_once or many or long or now - self._moved >= _QUIET

    def _begin(self, *, settle: bool) -> None:
        self._since, self._at_once = None, False
        self._helper.begin(self._model(), settle=settle)

    def _take_note(self, ended: Caught | PalaverError, now: float) -> None:
        if isinstance(ended, PalaverError):
            self._again, self._delay = now + self._delay, min(self._delay * 2, _BACK_OFF[1])
            return
        self._delay = _BACK_OFF[0]
        if ended.left:
            self._at_once, self._again = True, now + (0.0 if ended.seq else _BACK_OFF[0])
        else:
            self._done, self._lag = ended.seq, ended.lag
