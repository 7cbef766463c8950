"""Schedules of the index workers and language model runs that the background archiver starts.

A process sends sessions without recent activity to the model. It runs `palaver observe`, so that neither ingest nor
indexing waits for a model. The same budgets and call limits apply as to the user's own runs. The process can be
killed at any time.
"""

import subprocess
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import DecodeError, Struct, json

from ...archiver.store import Store
from ...core.errors import PalaverError
from .index_worker import IndexWorker, WorkerResult

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
_INDEX_RETRY: Final = (5.0, 300.0)
"""Seconds until the first retry after a failure, and the maximum delay of later retries."""
QUIET: Final = 600.0
"""Seconds without new lines after which a session is sent."""
_MODEL_RETRY: Final = (600.0, 6 * 3600.0)
"""Seconds until the first retry after a failure, and the maximum delay of later retries."""
_UNFINISHED: Final = 3600.0
"""Seconds until the next process if some requests could not be completed because of a budget."""
_STOPPING: Final = 5.0
"""Seconds that the process has to end when the archiver ends."""
_MESSAGE_MAX: Final = 500
_HINT: Final = "Run `palaver observe` to try again."


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
        self._not_before, self._retry = 0.0, _INDEX_RETRY[0]
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
            self._not_before, self._retry = now + self._retry, min(self._retry * 2, _INDEX_RETRY[1])
            return
        self._retry = _INDEX_RETRY[0]
        if result.left:
            # If no change was processed, another process holds the lease.
            self._stopped_early, self._not_before = True, now + (0.0 if result.seq else _INDEX_RETRY[0])
        else:
            self._indexed, self._lag = result.seq, result.lag


class _Failure(Struct, frozen=True):
    """Error before the extraction started, such as invalid settings."""

    message: str
    hint: str | None = None


class ModelResult(Struct, frozen=True):
    """Result of one process, as `palaver observe --json` prints it. `error` is set if the extraction did not start."""

    cards: int = 0
    observations: int = 0
    waiting: int = 0
    stopped: str | None = None
    off: str | None = None
    error: _Failure | None = None


class ModelSchedule:
    """Schedule that starts extraction processes and returns their results."""

    def __init__(self, command: Callable[[], Sequence[str]], clock: Callable[[], float]) -> None:
        """Prepare the schedule. `command` returns the command line, or an empty list if no model is configured."""
        self._command, self._clock = command, clock
        self._process: subprocess.Popen[bytes] | None = None
        self._due, self._not_before, self._retry = True, clock() + QUIET, _MODEL_RETRY[0]
        self._started = self._ingested = clock()

    @property
    def next_in(self) -> float:
        """Seconds until another process may start."""
        return max(0.0, self._not_before - self._clock())

    def note_ingest(self) -> None:
        """Record that a session has new lines."""
        self._ingested = self._clock()
        if not self._due:
            self._due, self._not_before = True, max(self._not_before, self._ingested + QUIET)

    def step(self) -> ModelResult | PalaverError | None:
        """Start a process if it is due. Return the result of a process that ended since the last call."""
        result = self._result()
        if result is not None:
            self._apply(result)
        elif self._process is None and self._due and self._clock() >= self._not_before:
            self._start()
        return result

    def stop(self) -> None:
        """End the process, and the agent that it runs. The next process continues its work."""
        if self._process is None:
            return
        process, self._process = self._process, None
        process.terminate()
        try:
            process.communicate(timeout=_STOPPING)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def _start(self) -> None:
        self._started, words = self._clock(), self._command()
        if not words:
            self._due = False
            return
        # Use a separate process group, so that Ctrl-C reaches only the archiver.
        self._process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
        )

    def _result(self) -> ModelResult | PalaverError | None:
        """Return the result or failure of the process, or None while it runs."""
        if self._process is None or self._process.poll() is None:
            return None
        process, self._process = self._process, None
        output, errors = process.communicate()
        try:
            result = json.decode(output, type=ModelResult)
        except DecodeError:
            text = " ".join((errors or output).decode("utf-8", "replace").split())[-_MESSAGE_MAX:]
            result = ModelResult(stopped=text)
        if process.returncode == 0:
            return result
        failed = result.error or _Failure(result.stopped or f"it exited with status {process.returncode}")
        return PalaverError(f"model extraction failed: {failed.message}", hint=failed.hint or _HINT)

    def _apply(self, result: ModelResult | PalaverError) -> None:
        now = self._clock()
        if isinstance(result, PalaverError):
            self._not_before, self._retry = now + self._retry, min(self._retry * 2, _MODEL_RETRY[1])
            return
        self._retry = _MODEL_RETRY[0]
        # The last session with new lines may have been active when the process started.
        unsettled = self._ingested > self._started - QUIET
        left = not result.off and bool(result.waiting)
        self._due = unsettled or left
        self._not_before = now + (_UNFINISHED if left and not unsettled else QUIET)
