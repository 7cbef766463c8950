"""Batches: many requests for half the price, answered within a day.

What is about to be sent is written down before it is sent, and the provider's name for it before it is asked about. A
process that dies between the two finds its batch again by the token in each request's id.
"""

from collections.abc import Callable
from contextlib import closing
from uuid import uuid4

from ...archiver.store import Batch, Job, Planned, Store
from ...core.clock import now
from ...core.conversation import Milliseconds
from ...core.progress import Progress
from .answers import Answers
from .errors import BudgetExhausted, ExtractionError, ModelBusy, ModelRefused, RequestRefused
from .ledger import Ledger
from .provider import Outcome, Provider
from .queue import Queue
from .request import TOKENS_OUT, Request

_SIZE = 500
"""Requests of one batch: with at most about 40 kB each a tenth of what the provider allows."""
_SKEW_MS = 3_600_000
"""How far the provider's clock may be from ours."""
_UNHEARD_MS = 600_000
"""How long after it was sent a batch may take to appear in the provider's list."""
_UNSUPPORTED = {404, 405, 501}
REASON = "backfill"


class Batches:
    """Sends jobs of one store in batches and takes over what comes back."""

    def __init__(
        self,
        store: Store,
        queue: Queue,
        ledger: Ledger,
        answers: Answers,
        provider: Provider,
        clock: Callable[[], Milliseconds] = now,
    ) -> None:
        self._store, self._queue, self._ledger = store, queue, ledger
        self._answers, self._provider, self._clock = answers, provider, clock

    def submit(self, progress: Progress) -> bool:
        """Send every job that is due; False when this server knows no batches. Raises `BudgetExhausted`."""
        sent = 0
        while jobs := self._queue.claim(_SIZE):
            asked = [(job, request) for job in jobs if (request := self._answers.request(job)) is not None]
            batch, taken, exhausted = self._intend(asked)
            if batch is not None and not self._hand_in(batch, taken):
                return False
            sent += len(taken)
            self._answers.report.sent += len(taken)
            progress(sent, sent)
            if exhausted is not None:
                raise exhausted
        return True

    def collect(self, progress: Progress) -> int:
        """Take over the results of every batch that ended; how many batches are still to come."""
        pending = 0
        for batch in self._store.jobs.open_batches():
            try:
                pending += not self._collected(batch, progress)
            except ModelRefused as error:
                if error.status not in _UNSUPPORTED:
                    raise
                # Another server than the one it was sent to, or results that were kept no longer: asked again, and
                # counted as paid.
                self._undo(batch, charged=True)
        return pending

    def _collected(self, batch: Batch, progress: Progress) -> bool:
        name = batch.name or self._found_again(batch)
        if name is None:
            return not self._store.jobs.of_batch(batch.id)
        if not self._provider.ended(name):
            return False
        self._take_all(batch, name, progress)
        return True

    def _intend(
        self, asked: list[tuple[Job, Request]]
    ) -> tuple[Batch | None, list[tuple[Job, Request]], BudgetExhausted | None]:
        """Reserve money for as many as there is money for, and write down that they are sent."""
        calls: list[int] = []
        exhausted = None
        with self._store.transaction():
            for job, request in asked:
                cost = self._answers.price.at_most(request.size(), TOKENS_OUT, batch=True)
                planned = Planned(request.model, REASON, job.exchange, job.digest, cost)
                try:
                    calls.append(self._ledger.reserve(planned))
                except BudgetExhausted as error:
                    exhausted = error
                    break
            taken, left = asked[: len(calls)], asked[len(calls) :]
            self._store.jobs.unclaim([job for job, _ in left])
            if not taken:
                return None, [], exhausted
            batch = self._store.jobs.intend(uuid4().hex, self._clock(), [job for job, _ in taken])
            self._store.ledger.attach(calls, batch.id)
        return batch, taken, exhausted

    def _hand_in(self, batch: Batch, taken: list[tuple[Job, Request]]) -> bool:
        requests = [(_custom_id(batch, job), request.params()) for job, request in taken]
        try:
            name = self._provider.submit(requests)
        except (ModelRefused, RequestRefused) as error:
            self._undo(batch)
            if error.status in _UNSUPPORTED:
                return False
            raise
        except ModelBusy as error:
            if not error.unsure:
                self._undo(batch)
            raise
        with self._store.transaction():
            self._store.jobs.name_batch(batch.id, name)
        return True

    def _undo(self, batch: Batch, *, charged: bool = False) -> None:
        with self._store.transaction():
            if not charged:
                self._store.ledger.release(list(self._store.ledger.of_batch(batch.id).values()))
            self._store.jobs.unclaim(self._store.jobs.of_batch(batch.id))
            self._store.jobs.end_batch(batch.id)

    def _found_again(self, batch: Batch) -> str | None:
        """The name of a batch whose answer nobody heard; it is undone when the provider surely never had it."""
        known = self._store.jobs.batch_names()
        strangers = [b for b in self._provider.recent() if b.name not in known and b.at >= batch.at - _SKEW_MS]
        for stranger in strangers:
            if stranger.ended and self._is(batch, stranger.name):
                with self._store.transaction():
                    self._store.jobs.name_batch(batch.id, stranger.name)
                return stranger.name
        if all(stranger.ended for stranger in strangers) and self._clock() - batch.at > _UNHEARD_MS:
            self._undo(batch)
        return None

    def _is(self, batch: Batch, name: str) -> bool:
        with closing(self._provider.results(name)) as results:
            first = next(results, None)
        return first is not None and first.custom_id.startswith(batch.token)

    def _take_all(self, batch: Batch, name: str, progress: Progress) -> None:
        jobs = {_custom_id(batch, job): job for job in self._store.jobs.of_batch(batch.id)}
        calls = self._store.ledger.of_batch(batch.id)
        total = len(calls)
        with closing(self._provider.results(name)) as results:
            for done, outcome in enumerate(results, start=1):
                job = jobs.pop(outcome.custom_id, None)
                call = calls.pop(_exchange(outcome.custom_id), None)
                if call is not None:
                    self._take(job, call, outcome)
                progress(done, total)
        missing = ModelBusy("the batch ended without a result for this request")
        for job in jobs.values():
            self._take(job, calls.pop(job.exchange), Outcome("", None, missing))
        with self._store.transaction():
            self._store.ledger.release(list(calls.values()))
            self._store.jobs.end_batch(batch.id)

    def _take(self, job: Job | None, call: int, outcome: Outcome) -> None:
        if outcome.answer is not None:
            self._answers.settle(job, call, outcome.answer, batch=True)
        elif job is not None:
            error = outcome.error or ExtractionError("no answer")
            self._answers.fail(job, call, error, charged=False)
        else:
            with self._store.transaction():
                self._store.ledger.release([call])


def _custom_id(batch: Batch, job: Job) -> str:
    return f"{batch.token}-{job.exchange}-{job.attempts}"


def _exchange(custom_id: str) -> int:
    part = custom_id.split("-")[1:2]
    return int(part[0]) if part and part[0].isdecimal() else -1
