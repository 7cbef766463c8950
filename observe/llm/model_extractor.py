"""Extraction with a language model: choose exchanges, send requests, and stop when a budget is used up."""

import time
from collections.abc import Callable, Iterator
from uuid import uuid4

from msgspec import Struct

from ...archiver.store import Job, PlannedCall, Store
from ...core.clock import now
from ...core.config import Config
from ...core.conversation import Milliseconds
from ...core.progress import Reporter, silent
from ...core.spending import Estimate, Extraction, Usage
from .backoff import Backoff
from .batch_sender import BatchSender
from .excerpt import is_worth_asking
from .extraction_request import TOKENS_OUT, ExtractionRequest, ExtractionTemplates, RequestBuilder
from .job_queue import JobQueue, reason_of
from .job_results import JobResults
from .ledger import Budget, Ledger
from .model_errors import BudgetExhausted, ExtractionError, ModelBusy, ModelRefused, RequestRefused
from .prices import price_of
from .private_projects import PrivateProjects
from .provider import BatchProvider, Provider
from .refused_requests import RefusedRequests
from .session_summaries import SessionSummaries

NEWEST = 3
"""Number of sessions sent immediately, because they may be in progress. Older sessions go into batches."""
QUIET_MS = 600_000
"""Milliseconds without activity after which a session counts as finished."""
_CHUNK = 100
"""Number of exchanges loaded from the store at a time."""
_TYPICAL_OUT = 800
"""Typical tokens of a reply including thinking, for estimates."""
REASON = "newest"


class _Selection(Struct):
    requests: list[ExtractionRequest]
    skipped: int = 0
    private: int = 0


class ModelExtractor:
    """Extractor that asks a language model. Its observations replace those of the rules.

    `provider` is a function that opens the provider. It is called before the first request.
    """

    def __init__(
        self,
        store: Store,
        config: Config,
        templates: ExtractionTemplates,
        provider: Callable[[], Provider],
        *,
        clock: Callable[[], Milliseconds] = now,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store, self._config, self._open, self._clock, self._sleep = store, config, provider, clock, sleep
        self._requests = RequestBuilder(templates, config.llm_name)
        self._price = price_of(config)
        self._queue = JobQueue(store, clock)
        self._ledger = Ledger(store, Budget.of(config), uuid4().hex, clock)
        self._private = PrivateProjects(store, config.private_projects)
        self._sessions = SessionSummaries(store, templates.of_sessions, config.llm_name, self._private)
        self._provider: Provider | None = None

    def estimate(self, report: Reporter = silent, *, outdated: bool = False) -> Estimate:
        """Return the expected cost of all outstanding requests, without sending any."""
        found = _Selection([])
        exchanges = tokens_in = 0
        for part in self._select(report, outdated=outdated):
            exchanges += len(part.requests)
            tokens_in += sum(request.question().tokens() for request in part.requests)
            found.skipped += part.skipped
            found.private += part.private
        sessions = 0
        for request in self._sessions.candidates(self._clock() - QUIET_MS, outdated=outdated):
            sessions += 1
            tokens_in += request.question().tokens()
        usage = Usage(tokens_in=tokens_in, tokens_out=(exchanges + sessions) * _TYPICAL_OUT)
        return Estimate(
            model=self._config.llm_name,
            exchanges=exchanges,
            skipped=found.skipped,
            private=found.private,
            tokens_in=tokens_in,
            tokens_out=usage.tokens_out,
            cost=self._price.cost(usage),
            batch=self._price.cost(usage, batch=True),
            priced=self._price.source,
            sessions=sessions,
            calls_day=self._config.llm_calls_day if self._config.llm == "command" else None,
        )

    def run(self, report: Reporter = silent, *, outdated: bool = False, quiet: bool = False) -> Extraction:
        """Store the results of earlier batches, then send the newest sessions immediately and the others in batches.

        With `quiet`, select only sessions without activity in the last ten minutes.

        An error that ends the run early is returned in `stopped`. A later run continues.
        """
        result = Extraction()
        results = JobResults(
            self._store, self._queue, self._requests, self._price, self._sessions, self._private, result
        )
        for part in self._select(report, outdated=outdated, quiet=quiet):
            self._queue.put({request.exchange: request.digest for request in part.requests})
        for request in self._sessions.candidates(self._clock() - QUIET_MS, outdated=outdated):
            self._queue.put({request.exchange: request.digest}, request.kind)
        try:
            self._work(results, report)
        except (ModelRefused, ModelBusy, RequestRefused, BudgetExhausted) as stop:
            result.stopped = stop
        states = self._store.jobs.states()
        result.waiting = states.get("waiting", 0) + states.get("leased", 0)
        result.pending = states.get("sent", 0)
        result.cost = self._ledger.spent()
        return result

    def _work(self, results: JobResults, report: Reporter) -> None:
        if self._store.jobs.open_batches() and (batches := self._batches(results)) is not None:
            batches.collect(lambda done, total: report("Collecting", done, total))
        refused, result = RefusedRequests(results), results.report
        try:
            self._send_each(results, report, refused, self._store.jobs.newest_sessions(NEWEST))
            if not self._store.jobs.due(self._clock()):
                return
            batches = self._batches(results)
            if batches is None or not batches.submit(lambda done, total: report("Sending", done, total)):
                self._send_each(results, report, refused, None)
        finally:
            if not (result.learned or result.nothing or result.summarised):
                result.stopped = refused.unanswered
            refused.finish()

    def _batches(self, results: JobResults) -> BatchSender | None:
        """Return the sender of batches, or None if the provider does not support batches."""
        provider = self._connected()
        if not isinstance(provider, BatchProvider):
            return None
        return BatchSender(self._store, self._queue, self._ledger, results, provider, self._clock)

    def _send_each(
        self, results: JobResults, report: Reporter, refused: RefusedRequests, sessions: set[int] | None
    ) -> None:
        """Send one request after another. Repeated failures end the run."""
        backoff, done = Backoff(self._sleep), 0
        while claimed := self._queue.claim(1, sessions):
            try:
                self._send(results, claimed[0], refused)
                backoff.reset()
            except ModelBusy as error:
                backoff.wait(error)
            done += 1
            report("Extracting", done, done + self._store.jobs.due(self._clock()))

    def _send(self, results: JobResults, job: Job, refused: RefusedRequests) -> None:
        request = results.request(job)
        if request is None:
            return
        call = self._reserve(job, request)
        try:
            answer = self._connected().ask(request.question())
        except RequestRefused as error:
            refused.add(job, call, error)
            if (stop := refused.stop()) is not None:
                raise stop from error
            return
        except ModelRefused:
            with self._store.transaction():
                self._store.ledger.release([call])
                self._store.jobs.unclaim([job])
            raise
        except ExtractionError as error:
            results.fail(job, call, error, charged=error.maybe_charged)
            if isinstance(error, ModelBusy):
                raise
            return
        except KeyboardInterrupt:
            self._queue.unclaim([job])
            raise
        refused.answered()
        results.report.asked += 1
        results.settle(job, call, answer)

    def _reserve(self, job: Job, request: ExtractionRequest) -> int:
        cost = self._price.maximum_cost(request.question().size(), TOKENS_OUT)
        planned = PlannedCall(request.model, reason_of(job, REASON), job.exchange, job.digest, cost)
        try:
            with self._store.transaction():
                return self._ledger.reserve(planned)
        except BudgetExhausted:
            self._queue.unclaim([job])
            raise

    def _connected(self) -> Provider:
        if self._provider is None:
            self._provider = self._open()
        return self._provider

    def _select(self, report: Reporter, *, outdated: bool, quiet: bool = False) -> Iterator[_Selection]:
        """Yield requests in chunks, each chunk with the number of skipped and of private exchanges."""
        before = self._clock() - QUIET_MS if quiet else None
        keys = self._store.jobs.candidates(self._requests.extractor, outdated=outdated, before=before)
        for start in range(0, len(keys), _CHUNK):
            report("Selecting", start, len(keys))
            part = _Selection([])
            for stored in self._store.exchanges.load(keys[start : start + _CHUNK]).values():
                if self._private.includes(stored):
                    part.private += 1
                    continue
                request = self._requests.build(stored)
                if is_worth_asking(stored.exchange, request.excerpt):
                    part.requests.append(request)
                else:
                    part.skipped += 1
            yield part
        report("Selecting", len(keys), len(keys))
