"""The language model stage: what is asked, in which order, and when it stops."""

import time
from collections.abc import Callable, Iterator
from uuid import uuid4

from msgspec import Struct

from ...archiver.store import Job, Planned, Store
from ...core.clock import now
from ...core.config import Config
from ...core.conversation import Milliseconds
from ...core.progress import Reporter, silent
from ...core.spending import Estimate, Extraction, Usage
from ...core.tokens import count
from .answers import Answers
from .batches import Batches
from .errors import BudgetExhausted, ExtractionError, ModelBusy, ModelRefused
from .excerpt import worth_asking
from .ledger import Budget, Ledger
from .messages import may_be_charged
from .prices import price_of
from .privacy import Privacy
from .provider import Provider
from .queue import Queue
from .request import TOKENS_OUT, Prompts, Request, Requests

NEWEST = 3
"""Sessions that are asked about at once, since somebody may still be at them; all others can wait for a batch."""
_CHUNK = 100
_BUSY_MAX = 3
_WAIT_MAX = 60.0
"""Seconds that a run waits for a provider that asks for patience; for longer it ends."""
_TYPICAL_OUT = 800
"""Tokens of an answer with the thinking before it, for estimates."""
REASON = "newest"


class _Sorted(Struct):
    requests: list[Request]
    skipped: int = 0
    private: int = 0


class Extractor:
    """Asks a language model about what the rules have seen.

    `provider` is called when the first request is about to be sent, and not before.
    """

    def __init__(
        self,
        store: Store,
        config: Config,
        prompts: Prompts,
        provider: Callable[[], Provider],
        *,
        clock: Callable[[], Milliseconds] = now,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store, self._config, self._open, self._clock, self._sleep = store, config, provider, clock, sleep
        self._requests = Requests(prompts, config.llm_model)
        self._price = price_of(config.llm_model, config.llm_price)
        self._queue = Queue(store, clock)
        self._ledger = Ledger(store, Budget.of(config), uuid4().hex, clock)
        self._privacy = Privacy(store, config.private_projects)
        self._provider: Provider | None = None

    def estimate(self, report: Reporter = silent, *, outdated: bool = False) -> Estimate:
        """What asking about everything would cost. Sends nothing."""
        found = _Sorted([])
        exchanges = tokens_in = 0
        for part in self._sorted(report, outdated=outdated):
            exchanges += len(part.requests)
            tokens_in += sum(count(request.system) + count(request.text) for request in part.requests)
            found.skipped += part.skipped
            found.private += part.private
        usage = Usage(tokens_in=tokens_in, tokens_out=exchanges * _TYPICAL_OUT)
        return Estimate(
            model=self._config.llm_model,
            exchanges=exchanges,
            skipped=found.skipped,
            private=found.private,
            tokens_in=tokens_in,
            tokens_out=usage.tokens_out,
            cost=self._price.cost(usage),
            batch=self._price.cost(usage, batch=True),
            priced=self._price.source,
        )

    def run(self, report: Reporter = silent, *, outdated: bool = False) -> Extraction:
        """Collect what was asked before, then ask: the newest sessions at once, the rest in batches.

        What stops it early stands in the result; nothing is lost by that, and search is never touched.
        """
        result = Extraction()
        answers = Answers(self._store, self._queue, self._requests, self._price, self._privacy, result)
        for part in self._sorted(report, outdated=outdated):
            self._queue.put({request.exchange: request.digest for request in part.requests})
        try:
            self._work(answers, report)
        except (ModelRefused, ModelBusy, BudgetExhausted) as stop:
            result.stopped = stop
        states = self._store.jobs.states()
        result.waiting = states.get("waiting", 0) + states.get("leased", 0)
        result.pending = states.get("sent", 0)
        result.cost = self._ledger.spent()
        return result

    def _work(self, answers: Answers, report: Reporter) -> None:
        if self._store.jobs.open_batches():
            self._batches(answers).collect(lambda done, total: report("Collecting", done, total))
        newest = self._store.jobs.newest_sessions(NEWEST)
        self._ask_all(answers, report, newest)
        if not self._store.jobs.due(self._clock()):
            return
        if not self._batches(answers).submit(lambda done, total: report("Sending", done, total)):
            self._ask_all(answers, report, None)

    def _batches(self, answers: Answers) -> Batches:
        return Batches(self._store, self._queue, self._ledger, answers, self._connected(), self._clock)

    def _ask_all(self, answers: Answers, report: Reporter, sessions: set[int] | None) -> None:
        """One question after another. A provider that is busy again and again ends it."""
        busy = done = 0
        while claimed := self._queue.claim(1, sessions):
            try:
                self._ask(answers, claimed[0])
                busy = 0
            except ModelBusy as error:
                busy += 1
                wait = error.after if error.after is not None else 2.0**busy
                if busy >= _BUSY_MAX or wait > _WAIT_MAX:
                    raise
                self._sleep(wait)
            done += 1
            report("Asking", done, done + self._store.jobs.due(self._clock()))

    def _ask(self, answers: Answers, job: Job) -> None:
        request = answers.request(job)
        if request is None:
            return
        call = self._reserve(job, request)
        try:
            answer = self._connected().ask(request.params())
        except ModelRefused:
            with self._store.transaction():
                self._store.ledger.release([call])
                self._store.jobs.unclaim([job])
            raise
        except ExtractionError as error:
            answers.fail(job, call, error, charged=may_be_charged(error))
            if isinstance(error, ModelBusy):
                raise
            return
        except KeyboardInterrupt:
            self._queue.unclaim([job])
            raise
        answers.report.asked += 1
        answers.settle(job, call, answer)

    def _reserve(self, job: Job, request: Request) -> int:
        cost = self._price.at_most(request.size(), TOKENS_OUT)
        planned = Planned(request.model, REASON, job.exchange, job.digest, cost)
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

    def _sorted(self, report: Reporter, *, outdated: bool) -> Iterator[_Sorted]:
        """What is not asked yet, in parts: requests, and how many say too little or are private."""
        keys = self._store.jobs.candidates(self._requests.extractor, outdated=outdated)
        for start in range(0, len(keys), _CHUNK):
            report("Choosing", start, len(keys))
            part = _Sorted([])
            for stored in self._store.exchanges.load(keys[start : start + _CHUNK]).values():
                if self._privacy.covers(stored):
                    part.private += 1
                    continue
                request = self._requests.about(stored)
                if worth_asking(stored.exchange, request.shown):
                    part.requests.append(request)
                else:
                    part.skipped += 1
            yield part
        report("Choosing", len(keys), len(keys))
