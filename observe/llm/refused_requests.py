"""Requests that the provider refused, while it is unknown whether the request or the settings are wrong.

- If a later request is answered, the refused request is wrong. Its job becomes a dead letter.
- If no later request is answered, the settings or the account may be wrong. The job is retried later. The failed call
  counts as an attempt only if another request of the run was answered.
"""

from typing import Final

from ...archiver.store import Job
from .job_results import JobResults
from .model_errors import ModelBusy, ModelRefused, RequestRefused

REFUSED_MAX: Final = 3
"""Number of refusals in a row that end a run."""
_RETRY_AFTER: Final = 600.0
"""Seconds until refused requests are retried. In the meantime, a new run starts with other requests."""
_HINT: Final = "They are retried later. Check the llm settings in config.toml, then run `palaver observe` again."


class RefusedRequests:
    """Refused requests of one run or one batch."""

    def __init__(self, results: JobResults) -> None:
        self._results = results
        self._held: list[tuple[Job, int, RequestRefused]] = []
        self._answered = False

    def add(self, job: Job, call: int, error: RequestRefused) -> None:
        """Add a refused request. Its job becomes a dead letter when a later request is answered."""
        self._held.append((job, call, error))

    def answered(self) -> None:
        """Record that a request was answered.

        All requests that were refused before are wrong, so their jobs become dead letters.
        """
        self._answered = True
        for job, call, error in self._held:
            self._results.fail(job, call, error, charged=error.maybe_charged)
        self._held.clear()

    @property
    def unanswered(self) -> ModelRefused | None:
        """Error of a run in which all requests were refused, or None for any other run."""
        if not self._held or self._answered:
            return None
        last = self._held[-1][2]
        return ModelRefused(f"no request was answered: {last}", last.status, hint=_HINT)

    def stop(self) -> ModelRefused | None:
        """Return the error that ends the run, if several requests in a row were refused."""
        if len(self._held) < REFUSED_MAX:
            return None
        found = "requests in a row were refused" if self._answered else "requests were refused and none answered"
        last = self._held[-1][2]
        return ModelRefused(f"{len(self._held)} {found}: {last}", last.status, hint=_HINT)

    def finish(self) -> None:
        """Schedule retries of the remaining refused requests, because the reason for refusal is still unknown."""
        for job, call, error in self._held:
            retry = ModelBusy(str(error), after=_RETRY_AFTER, maybe_charged=self._answered)
            self._results.fail(job, call, retry, charged=error.maybe_charged)
        self._held.clear()
