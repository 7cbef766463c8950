"""Schedule of the index workers that the background archiver starts."""

from collections.abc import Callable
from typing import Final

from ...archiver.store import Store
from ...core.errors import PalaverError
from .worker_process import IndexWorker, WorkerResult

_QUIET: Final = 4.0
"""Seconds without a change after which changes are indexed."""
_LONGEST: Final = 30.0
"""Maximum seconds to wait before indexing while files keep changing.

With a lower value, an exchange that is still growing would be observed more often.
"""
_MANY: Final = 300
"""Minimum number of waiting changes that are indexed without further delay."""
_SETTLED: Final = 60.0
"""Seconds without a change after which even a few unpublished changes are published."""
_IDLE: Final = 3600.0
"""Seconds after which a worker checks for damage even if nothing changed."""
_RETRY: Final = (5.0, 300.0)
"""Seconds until the first retry after a failure, and the maximum delay of later retries."""


class IndexSchedule:
    """Schedule that starts index workers and returns their results."""

    def __init__(
        self, store: Store, worker: IndexWorker, model: Callable[[], str | None], clock: Callable[[], float]
    ) -> None:
        """Prepare the schedule.

        `model` returns the embedding model for the next worker, or None for the packaged model.
        """
        self._store, self._worker, self._model, self._clock = store, worker, model, clock
        self._indexed, self._lag, self._stopped_early = -1, 0, False
        """Last processed change, number of unpublished changes, and True if the last worker stopped early."""
        self._last, self._changed_at = -1, clock()
        self._changing_since: float | None = None
        self._not_before, self._retry = 0.0, _RETRY[0]
        self._next_check = clock() + _IDLE

    @property
    def quiet(self) -> bool:
        """True if there was no recent change and no work is left."""
        idle = not self._worker.busy and self._last == self._indexed
        return idle and self._clock() - self._changed_at >= _QUIET

    @property
    def next_in(self) -> float:
        """Seconds until another worker may start."""
        return max(0.0, self._not_before - self._clock())

    def step(self) -> WorkerResult | PalaverError | None:
        """Start a worker if it is due. Return the result of a worker that ended since the last call."""
        now = self._clock()
        result = self._worker.result()
        if result is not None:
            self._apply(result, now)
        last = self._store.changes.last()
        if last != self._last:
            self._last, self._changed_at = last, now
            self._changing_since = self._changing_since or now
        if not self._worker.busy and now >= self._not_before:
            self._start_if_due(now)
        return result

    def _start_if_due(self, now: float) -> None:
        if (self._last > self._indexed and self._is_due(now)) or self._store.documents.count_queued():
            self._start(settle=False)
        elif self._last == self._indexed and self._lag and now - self._changed_at >= _SETTLED:
            self._not_before = now + _SETTLED
            self._start(settle=True)
        elif self.quiet and now >= self._next_check:
            self._next_check = now + _IDLE
            self._start(settle=True)

    def _is_due(self, now: float) -> bool:
        first = self._indexed < 0  # Even an archiver that is often killed gets an index.
        long = self._changing_since is not None and now - self._changing_since >= _LONGEST
        many = self._last - self._indexed >= _MANY
        return first or self._stopped_early or many or long or now - self._changed_at >= _QUIET

    def _start(self, *, settle: bool) -> None:
        self._changing_since, self._stopped_early = None, False
        self._worker.start(self._model(), settle=settle)

    def _apply(self, result: WorkerResult | PalaverError, now: float) -> None:
        if isinstance(result, PalaverError):
            self._not_before, self._retry = now + self._retry, min(self._retry * 2, _RETRY[1])
            return
        self._retry = _RETRY[0]
        if result.left:
            # If no change was processed, another process holds the lease.
            self._stopped_early, self._not_before = True, now + (0.0 if result.seq else _RETRY[0])
        else:
            self._indexed, self._lag = result.seq, result.lag
