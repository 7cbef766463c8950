"""Answers: what a model said takes the place of what the rules said, together with its price and the end of its job."""

from ...archiver.store import Job, Store, StoredExchange
from ...core.observation import Observation
from ...core.spending import Extraction
from ..learned import keep, summarise
from .errors import ExtractionError, ReplyInvalid
from .prices import Price
from .privacy import Privacy
from .proof import prove
from .provider import Answer
from .queue import Queue
from .reply import read
from .request import Request, Requests

LEARNED, NOTHING = "learned", "nothing"
_KNOWN = 10


class Answers:
    """Asks and settles for one store and one model; `report` hears what became of each job."""

    def __init__(
        self, store: Store, queue: Queue, requests: Requests, price: Price, privacy: Privacy, report: Extraction
    ) -> None:
        self._store, self._queue, self._requests, self._privacy = store, queue, requests, privacy
        self.price, self.report = price, report

    def request(self, job: Job) -> Request | None:
        """What this job asks; None, and the job is forgotten, when it says something else or is private by now."""
        stored = self._stored(job.exchange)
        if stored is not None and not self._privacy.covers(stored):
            request = self._requests.about(stored, self._known(stored))
            if request.digest == job.digest:
                return request
        with self._store.transaction():
            self._store.jobs.drop(job)
        return None

    def _known(self, stored: StoredExchange) -> list[Observation]:
        """What the session taught before; what it taught in a private folder is not told."""
        latest = self._store.observations.latest(stored.session, stored.key, _KNOWN)
        exchanges = self._store.exchanges.load([each.exchange for each in latest])
        return [each.observation for each in latest if not self._privacy.covers(exchanges[each.exchange])]

    def settle(self, job: Job | None, call: int, answer: Answer, *, batch: bool = False) -> None:
        """Save what an answer is worth in one transaction: its price, the observations, the end of the job.

        Without a job, or when it is no longer the holder's, only the price is saved.
        """
        cost = self.price.cost(answer.usage, batch=batch)
        with self._store.transaction():
            self._store.ledger.settle(call, answer.usage, cost)
            if job is not None and self._store.jobs.live(job):
                self._take(job, answer)

    def fail(self, job: Job, call: int, error: ExtractionError, *, charged: bool) -> None:
        """Save that a call brought nothing. Unless it may have been charged, its money is free again."""
        with self._store.transaction():
            if not charged:
                self._store.ledger.release([call])
            self._fail(job, error)

    def _take(self, job: Job, answer: Answer) -> None:
        stored = self._stored(job.exchange)
        request = None if stored is None else self._requests.about(stored)
        if stored is None or request is None or request.digest != job.digest:
            self._store.jobs.drop(job)
            return
        try:
            observations, refused = self._learned(stored, request, answer)
        except ReplyInvalid as error:
            self._fail(job, error)
            return
        outcome = LEARNED if observations else NOTHING
        kept = observations or self._kept(stored)
        keep(self._store, stored, self._store.sessions.load(stored.session), kept, self._requests.extractor)
        summarise(self._store, [stored.session])
        self._store.jobs.finish(job, outcome, refused)
        self.report.refused += refused
        self.report.observations += len(observations)
        self.report.learned += bool(observations)
        self.report.nothing += not observations

    def _learned(self, stored: StoredExchange, request: Request, answer: Answer) -> tuple[tuple[Observation, ...], int]:
        if answer.cut:
            raise ReplyInvalid(f"the reply was cut: {answer.cut}", answer.raw)
        try:
            reply = read(answer.text)
        except ReplyInvalid as error:
            raise ReplyInvalid(str(error), answer.raw) from None
        proven = prove(reply, stored, request.shown, self._requests.extractor, answer.raw)
        return proven.observations, proven.refused

    def _kept(self, stored: StoredExchange) -> tuple[Observation, ...]:
        """Where files changed something happened, whatever a model or a text that speaks to it says."""
        if not stored.exchange.writes:
            return ()
        known = self._store.observations.of_exchange(stored.key)
        return tuple(each.observation for each in known if not each.summary)

    def _fail(self, job: Job, error: ExtractionError) -> None:
        self.report.failed += 1
        self.report.buried += self._queue.fail(job, error)

    def _stored(self, exchange: int) -> StoredExchange | None:
        return self._store.exchanges.load([exchange]).get(exchange)
