"""Sender of batches: many requests at once, which cost half the price and are answered within a day.

A batch is stored before it is sent. Its name at the provider is stored before its results are read. After a crash
between these steps, the token in the request IDs identifies the batch at the provider.
"""

from collections.abc import Callable
from contextlib import closing
from typing import Final
from uuid import uuid4

from ...archiver.store import Batch, Job, JobKind, PlannedCall, Store
from ...core.conversation import Milliseconds
from ...core.progress import Progress
from .extraction_request import TOKENS_OUT, ExtractionRequest
from .job_queue import SESSION, JobQueue, reason_of
from .job_results import JobResults
from .ledger import Ledger
from .model_errors import BudgetExhausted, ExtractionError, ModelBusy, ModelRefused, RequestRefused
from .provider import BatchProvider, BatchResult
from .refused_requests import RefusedRequests

_SIZE: Final = 500
"""Maximum requests per batch. At 40 kB each, a batch has a tenth of the size that the provider allows."""
_SKEW_MS: Final = 3_600_000
"""Tolerated difference between the provider's clock and the local clock."""
_APPEARS_WITHIN_MS: Final = 600_000
"""Maximum time until a submitted batch appears in the provider's list."""
_UNSUPPORTED: Final = frozenset({404, 405, 501})
"""HTTP statuses of a server without a batch endpoint."""
REASON: Final = "backfill"

_Claimed = tuple[Job, ExtractionRequest]


class BatchSender:
    """Sender of batches of jobs. It also stores their results."""

    def __init__(
        self,
        store: Store,
        queue: JobQueue,
        ledger: Ledger,
        results: JobResults,
        provider: BatchProvider,
        clock: Callable[[], Milliseconds],
    ) -> None:
        self._store, self._queue, self._ledger = store, queue, ledger
        self._results, self._provider, self._clock = results, provider, clock

    def submit(self, progress: Progress) -> bool:
        """Send all due jobs. Return False if the server has no batch endpoint.

        Raises:
            BudgetExhausted: Some jobs were not sent.
            ModelRefused, ModelBusy, RequestRefused: The provider rejected a batch.
        """
        sent = 0
        while jobs := self._queue.claim(_SIZE):
            claimed = [(job, request) for job in jobs if (request := self._results.request(job)) is not None]
            batch, reserved, exhausted = self._reserve(claimed)
            if batch is not None and not self._send(batch, reserved):
                return False
            sent += len(reserved)
            self._results.report.sent += len(reserved)
            progress(sent, sent)
            if exhausted is not None:
                raise exhausted
        return True

    def collect(self, progress: Progress) -> None:
        """Store the results of all completed batches."""
        for batch in self._store.jobs.open_batches():
            try:
                name = batch.name or self._find_lost(batch)
                if name is not None and self._provider.ended(name):
                    self._store_results(batch, name, progress)
            except ModelRefused as error:
                if error.status not in _UNSUPPORTED:
                    raise
                # This is a batch of another server, or its results have expired. Queue the jobs again and count the
                # batch as charged.
                self._cancel(batch, charged=True)

    def _reserve(self, claimed: list[_Claimed]) -> tuple[Batch | None, list[_Claimed], BudgetExhausted | None]:
        """Reserve the cost of all requests that the budgets allow, and store the batch before it is sent."""
        calls: list[int] = []
        exhausted = None
        with self._store.transaction():
            for job, request in claimed:
                cost = self._results.price.maximum_cost(request.question().size(), TOKENS_OUT, batch=True)
                planned = PlannedCall(request.model, reason_of(job, REASON), job.exchange, job.digest, cost)
                try:
                    calls.append(self._ledger.reserve(planned))
                except BudgetExhausted as error:
                    exhausted = error
                    break
            reserved, left = claimed[: len(calls)], claimed[len(calls) :]
            self._store.jobs.unclaim([job for job, _ in left])
            if not reserved:
                return None, [], exhausted
            batch = self._store.jobs.insert_batch(uuid4().hex, self._clock(), [job for job, _ in reserved])
            self._store.ledger.attach(calls, batch.id)
        return batch, reserved, exhausted

    def _send(self, batch: Batch, reserved: list[_Claimed]) -> bool:
        requests = [(_custom_id(batch, job), request.question()) for job, request in reserved]
        try:
            name = self._provider.submit(requests)
        except (ModelRefused, RequestRefused) as error:
            self._cancel(batch)
            if error.status in _UNSUPPORTED:
                return False
            raise
        except ModelBusy as error:
            if not error.maybe_charged:
                self._cancel(batch)
            raise
        with self._store.transaction():
            self._store.jobs.name_batch(batch.id, name)
        return True

    def _cancel(self, batch: Batch, *, charged: bool = False) -> None:
        with self._store.transaction():
            if not charged:
                self._store.ledger.release(list(self._store.ledger.of_batch(batch.id).values()))
            self._store.jobs.unclaim(self._store.jobs.of_batch(batch.id))
            self._store.jobs.end_batch(batch.id)

    def _find_lost(self, batch: Batch) -> str | None:
        """Return the provider's name for a batch that was sent without a reply, or None if it is not found.

        If the provider does not list the batch after ten minutes, cancel the stored batch.
        """
        known = self._store.jobs.batch_names()
        others = [b for b in self._provider.recent() if b.name not in known and b.at >= batch.at - _SKEW_MS]
        for other in others:
            if other.ended and self._has_token(batch, other.name):
                with self._store.transaction():
                    self._store.jobs.name_batch(batch.id, other.name)
                return other.name
        if all(other.ended for other in others) and self._clock() - batch.at > _APPEARS_WITHIN_MS:
            self._cancel(batch)
        return None

    def _has_token(self, batch: Batch, name: str) -> bool:
        with closing(self._provider.results(name)) as results:
            first = next(results, None)
        return first is not None and first.custom_id.startswith(batch.token)

    def _store_results(self, batch: Batch, name: str, progress: Progress) -> None:
        jobs = {_custom_id(batch, job): job for job in self._store.jobs.of_batch(batch.id)}
        calls = {
            _subject(exchange, is_session=reason == SESSION): call
            for (exchange, reason), call in self._store.ledger.of_batch(batch.id).items()
        }
        total, answered, refused = len(calls), False, RefusedRequests(self._results)
        with closing(self._provider.results(name)) as results:
            for done, result in enumerate(results, start=1):
                job = jobs.pop(result.custom_id, None)
                call = calls.pop(_subject_in(result.custom_id), None)
                if job is not None and call is not None and isinstance(result.error, RequestRefused):
                    refused.add(job, call, result.error)
                elif call is not None:
                    self._store_result(job, call, result)
                answered = answered or result.answer is not None
                progress(done, total)
        if answered:
            # The results of a batch can be in any order.
            refused.answered()
        stop = refused.stop()
        refused.finish()
        missing = ModelBusy("the batch ended without a result for this request")
        for job in jobs.values():
            self._store_result(job, calls.pop(_subject_of(job)), BatchResult("", None, missing))
        with self._store.transaction():
            self._store.ledger.release(list(calls.values()))
            self._store.jobs.end_batch(batch.id)
        if stop is not None:
            raise stop

    def _store_result(self, job: Job | None, call: int, result: BatchResult) -> None:
        if result.answer is not None:
            self._results.settle(job, call, result.answer, batch=True)
        elif job is not None:
            error = result.error or ExtractionError("no answer")
            self._results.fail(job, call, error, charged=False)
        else:
            with self._store.transaction():
                self._store.ledger.release([call])


def _custom_id(batch: Batch, job: Job) -> str:
    return f"{batch.token}-{_subject_of(job)}-{job.attempts}"


def _subject_of(job: Job) -> str:
    return _subject(job.exchange, is_session=job.kind is JobKind.SESSION)


def _subject(exchange: int, *, is_session: bool) -> str:
    return f"s{exchange}" if is_session else str(exchange)


def _subject_in(custom_id: str) -> str:
    return custom_id.partition("-")[2].partition("-")[0]
