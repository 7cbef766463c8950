"""Job results: store the observations, the cost and the completion of a job in one transaction."""

from ...archiver.store import Job, JobKind, Store, StoredExchange
from ...core.observation import Observation
from ...core.spending import Extraction
from ..extraction.observation_writer import keep, summarise
from ..rules.verification import includes_external
from .extraction_reply import read_reply, verify_reply
from .extraction_request import ExtractionRequest, RequestBuilder
from .job_queue import JobQueue
from .model_errors import ExtractionError, ReplyInvalid
from .prices import Price
from .private_projects import PrivateProjects
from .provider import Answer
from .session_summaries import SessionSummaries

_KNOWN_MAX = 10
"""Maximum number of earlier observations of the session in a request."""


class JobResults:
    """Requests and results of the jobs of one store and one model. `report` counts the outcomes."""

    def __init__(
        self,
        store: Store,
        queue: JobQueue,
        requests: RequestBuilder,
        price: Price,
        sessions: SessionSummaries,
        private: PrivateProjects,
        report: Extraction,
    ) -> None:
        self._store, self._queue, self._requests, self._private = store, queue, requests, private
        self._sessions = sessions
        self.price, self.report = price, report

    def request(self, job: Job) -> ExtractionRequest | None:
        """Return the request of a job. If its content changed or became private, remove the job and return None."""
        request = self._build(job)
        if request is not None and request.digest == job.digest:
            return request
        with self._store.transaction():
            self._store.jobs.drop(job)
        return None

    def _build(self, job: Job) -> ExtractionRequest | None:
        if job.kind is JobKind.SESSION:
            return self._sessions.request(job.exchange)
        stored = self._stored(job.exchange)
        if stored is None or self._private.includes(stored):
            return None
        return self._requests.build(stored, self._known(stored))

    def settle(self, job: Job | None, call: int, answer: Answer, *, batch: bool = False) -> None:
        """Store the result of a call in one transaction: cost, observations and completion of the job.

        Store only the cost if `job` is None or another process has claimed the job.
        """
        cost = self.price.cost(answer.usage, batch=batch)
        with self._store.transaction():
            self._store.ledger.settle(call, answer.usage, cost)
            if job is not None and self._store.jobs.is_claimed(job):
                store_answer = self._store_summary if job.kind is JobKind.SESSION else self._store_answer
                store_answer(job, answer)

    def fail(self, job: Job, call: int, error: ExtractionError, *, charged: bool) -> None:
        """Store a failed call, and release its reservation unless the call may have been charged."""
        with self._store.transaction():
            if not charged:
                self._store.ledger.release([call])
            self._fail(job, error)

    def _known(self, stored: StoredExchange) -> list[Observation]:
        """Return earlier observations of the session, except those from private folders."""
        latest = self._store.observations.latest(stored.session, stored.key, _KNOWN_MAX)
        exchanges = self._store.exchanges.load([each.exchange for each in latest])
        return [each.observation for each in latest if not self._private.includes(exchanges[each.exchange])]

    def _store_answer(self, job: Job, answer: Answer) -> None:
        stored = self._stored(job.exchange)
        request = None if stored is None else self._requests.build(stored)
        if stored is None or request is None or request.digest != job.digest:
            self._store.jobs.drop(job)
            return
        try:
            observations, rejected = self._observations(stored, request, answer)
        except ReplyInvalid as error:
            self._fail(job, error)
            return
        kept = observations or self._protected(stored)
        keep(self._store, stored, self._store.sessions.load(stored.session), kept, self._requests.extractor)
        summarise(self._store, [stored.session])
        self._store.jobs.finish(job, "learned" if observations else "nothing", rejected)
        self.report.refused += rejected
        self.report.observations += len(observations)
        self.report.learned += bool(observations)
        self.report.nothing += not observations

    def _store_summary(self, job: Job, answer: Answer) -> None:
        request = self._sessions.request(job.exchange)
        if request is None or request.digest != job.digest:
            self._store.jobs.drop(job)
            return
        try:
            _raise_if_truncated(answer)
            stored, rejected = self._sessions.keep(request, answer)
        except ReplyInvalid as error:
            self._fail(job, error)
            return
        self._store.jobs.finish(job, "summarised" if stored else "nothing", rejected)
        self.report.refused += rejected
        self.report.summarised += stored

    def _observations(
        self, stored: StoredExchange, request: ExtractionRequest, answer: Answer
    ) -> tuple[tuple[Observation, ...], int]:
        _raise_if_truncated(answer)
        try:
            reply = read_reply(answer.text)
        except ReplyInvalid as error:
            raise ReplyInvalid(str(error), answer.raw) from None
        verified = verify_reply(reply, stored, request.excerpt, self._requests.extractor, answer.raw)
        return verified.observations, verified.rejected

    def _protected(self, stored: StoredExchange) -> tuple[Observation, ...]:
        """Return the earlier observations to keep if the model finds nothing in an exchange.

        Only an exchange with external text keeps them, because the text could have instructed the model to answer
        `nothing`.
        """
        if not includes_external(stored.exchange):
            return ()
        known = self._store.observations.of_exchange(stored.key)
        return tuple(each.observation for each in known if not each.summary)

    def _fail(self, job: Job, error: ExtractionError) -> None:
        self.report.failed += 1
        self.report.given_up += self._queue.fail(job, error)

    def _stored(self, exchange: int) -> StoredExchange | None:
        return self._store.exchanges.load([exchange]).get(exchange)


def _raise_if_truncated(answer: Answer) -> None:
    if answer.truncated:
        raise ReplyInvalid(f"the reply was truncated: {answer.truncated}", answer.raw)
