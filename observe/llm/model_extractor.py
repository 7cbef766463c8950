"""Extraction of observations with a language model, for whole sessions or single exchanges.

Sessions are sent one after another until a budget is used up. A single exchange takes one call, and its observations
replace those of the rules.
"""

import time
from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from ...archiver.store import MODEL, MODEL_PREFIX, Store, StoredExchange
from ...archiver.store.ledger_table import INVALID, NOTHING
from ...core.config import Config
from ...core.conversation import Exchange, Kind, Milliseconds, Span, Speaker, Turn, now
from ...core.observation import Observation
from ...core.reports import Estimate, Extraction, Usage
from ...core.runtime import Reporter, silent
from ..extraction.observation_writer import keep, summarise
from ..rules.exchange_analysis import includes_external
from .extraction_request import (
    ExtractionRequest,
    Reply,
    RequestBuilder,
    is_worth_asking,
    last_answer,
    shorten,
    shorten_session,
    verify_reply,
)
from .ledger import BookedCalls, cost_of
from .model_settings import PrivateProjects, provider_of
from .provider import (
    Answer,
    Backoff,
    BudgetExhausted,
    ExtractionError,
    ModelBusy,
    ModelRefused,
    Prompts,
    Provider,
    ReplyInvalid,
    RequestRefused,
)
from .session_cards import SessionCards, SessionReply, SessionVerifier

_KNOWN_MAX: Final = 10
"""Maximum number of earlier observations of the session in a request."""
_ATTEMPTS_MAX: Final = 3
"""Number of calls without a valid reply after which a session is not sent again until it or the prompt changes."""
_REFUSED_MAX: Final = 3
"""Number of refusals in a row that end a run."""
_INVALID_MAX: Final = 10
"""Number of invalid replies in a row that end a run."""
_TYPICAL_OUT: Final = 1_000
"""Typical tokens of a reply, for estimates."""
_Queued = tuple[int, ExtractionRequest]
_TURNS: Final = (
    Turn(1, Speaker.HUMAN, Kind.PROMPT, "Why does the nightly export write two files? Repair it."),
    Turn(
        2,
        Speaker.ASSISTANT,
        Kind.PROSE,
        "The timer starts the export in both time zones, so it ran twice. I set the timer to UTC. "
        "Old double files are still in the folder.",
    ),
)
_SESSION: Final = StoredExchange(0, 0, 0, Exchange(0, Span(1, 2, 0, 0), _TURNS, None, None))


class SingleExchanges:
    """Requests and results of the calls for single exchanges."""

    reason, prompts = "exchange", "observe"

    def __init__(self, store: Store, prompts: Prompts, model: str, private: PrivateProjects) -> None:
        self._store, self._private = store, private
        self._requests = RequestBuilder(prompts, model, Reply)
        self.skipped = self.private = 0

    def subjects(self, _at: Milliseconds) -> list[int]:
        """Return the exchanges to send."""
        return self._store.model_queue.exchanges(self._requests.version)

    def request(self, exchange: int) -> ExtractionRequest | None:
        """Return the request about an exchange, or None if it is private or too short, which is counted."""
        stored = self._store.exchanges.load([exchange])[exchange]
        if self._private.includes(stored):
            self.private += 1
            return None
        request = self._build(stored)
        if is_worth_asking(stored.exchange, request.excerpt):
            return request
        self.skipped += 1
        return None

    def keep(self, exchange: int, request: ExtractionRequest, answer: Answer, report: Extraction) -> str:
        """Store the observations of an answer, inside a transaction. Return the outcome.

        Raises:
            ReplyInvalid: The answer has no usable observation.
        """
        stored = self._store.exchanges.load([exchange]).get(exchange)
        if stored is None or self._build(stored).digest != request.digest:
            return "outdated"
        extractor = f"{MODEL_PREFIX}{self._requests.name}"
        verified = verify_reply(answer.text, stored, request.excerpt, extractor, answer.raw)
        kept = verified.observations or self._protected(stored)
        keep(self._store, stored, self._store.sessions.load(stored.session), kept, extractor)
        summarise(self._store, [stored.session])
        report.refused += verified.rejected
        report.cut += verified.cut
        report.observations += len(verified.observations)
        report.learned += bool(verified.observations)
        report.nothing += not verified.observations
        return "learned" if verified.observations else NOTHING

    def _protected(self, stored: StoredExchange) -> list[Observation]:
        """Return the earlier observations to keep if the model finds nothing in an exchange.

        What rules found about changed files is true whatever the model answers. Fetched text could have instructed the
        model to answer `nothing`.
        """
        if not stored.exchange.writes and not includes_external(stored.exchange):
            return []
        observations = self._store.observations.of_exchange(stored.key)
        return [row.observation for row in observations if not row.summary]

    def _build(self, stored: StoredExchange) -> ExtractionRequest:
        """Return a request with earlier observations of the session and the answer before the prompt.

        Text of private folders is omitted.
        """
        latest = self._store.observations.latest(stored.session, stored.key, _KNOWN_MAX)
        keys = self._store.summaries.newest_exchanges(stored.session)
        before = [key for key in keys if key < stored.key][-1:]
        loaded = self._store.exchanges.load([*(row.exchange for row in latest), *before])
        public = {key for key, row in loaded.items() if not self._private.includes(row)}
        titles = [row.observation.title for row in latest if row.exchange in public]
        answers = [last_answer(loaded[key].exchange) for key in before if key in public]
        excerpt = shorten(stored.exchange, self._store.sessions.load(stored.session).cwd)
        return self._requests.build(stored.key, excerpt, titles, "".join(answers))


class ModelExtractor:
    """Extractor that asks a language model about whole sessions, or about single exchanges if `exchanges` is set.

    `prompts` returns the prompts with a name. `provider` opens the provider, before the first request.
    """

    def __init__(
        self,
        store: Store,
        config: Config,
        prompts: Callable[[str], Prompts],
        provider: Callable[[], Provider],
        *,
        exchanges: bool = False,
        clock: Callable[[], Milliseconds] = now,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store, self._config, self._open, self._clock = store, config, provider, clock
        private = PrivateProjects(store, config.private_projects)
        kind = SingleExchanges if exchanges else SessionCards
        self._kind: SessionCards | SingleExchanges = kind(store, prompts(kind.prompts), config.llm_name, private)
        self._calls = BookedCalls(store, config, kind.reason, clock)
        self._backoff = Backoff(sleep)
        self._provider: Provider | None = None

    def estimate(self, report: Reporter = silent) -> Estimate:
        """Return the expected cost of all outstanding requests, without sending any."""
        requests = tokens_in = 0
        for _, request in self._queue(Extraction(), report):
            requests += 1
            tokens_in += request.question.tokens()
        usage = Usage(tokens_in=tokens_in, tokens_out=requests * _TYPICAL_OUT)
        return Estimate(
            model=self._config.llm_name,
            calls=requests,
            unit=self._kind.reason,
            skipped=self._kind.skipped,
            private=self._kind.private,
            tokens_in=tokens_in,
            tokens_out=usage.tokens_out,
            cost=cost_of(usage, self._calls.price),
            priced=self._calls.price.source,
            calls_day=self._config.llm_calls_day if self._config.llm == "command" else None,
        )

    def run(self, report: Reporter = silent) -> Extraction:
        """Send every session that needs a card, never-read sessions first, and store the replies.

        A session whose call fails is sent again by a later run. An error that ends the run early is returned in
        `stopped`.

        Raises:
            LeaseHeld: Another process is sending sessions.
        """
        result = Extraction()
        with self._store.leases.hold(MODEL):
            queue = self._queue(result, silent)
            try:
                self._send_all(queue, result, report)
            except (ModelRefused, ModelBusy, BudgetExhausted) as stop:
                result.stopped = stop
                result.waiting = 1 + sum(1 for _ in queue)
        result.cost = self._calls.spent()
        return result

    def _send_all(self, queue: Iterator[_Queued], result: Extraction, report: Reporter) -> None:
        refused = invalid = done = 0
        total = len(self._kind.subjects(self._clock()))
        for subject, request in queue:
            try:
                outcome = self._send(subject, request, result)
            except RequestRefused as error:
                refused += 1
                _note(result, error)
                if refused == _REFUSED_MAX:
                    raise _stop(f"{refused} requests in a row were refused: {error}", error.status) from error
                continue
            except ModelBusy as error:
                _note(result, error)
                self._backoff.wait(error)
                continue
            except ReplyInvalid as error:
                _note(result, error)
                outcome = INVALID
            self._backoff.reset()
            refused, invalid = 0, invalid + 1 if outcome == INVALID else 0
            if invalid == _INVALID_MAX:
                raise _stop(f"{invalid} replies in a row were not valid. {self._config.llm_name} may be too small.", 0)
            done += 1
            report("Extracting", done, max(total, done))

    def _send(self, subject: int, request: ExtractionRequest, result: Extraction) -> str:
        """Make one call and return its outcome."""
        outcomes: list[str] = []

        def keep(answer: Answer) -> str:
            outcomes.append(self._keep(subject, request, answer, result))
            return outcomes[0]

        self._calls.make(request.size, lambda: self._connected().ask(request.question), keep)
        result.asked += 1
        return outcomes[0]

    def _keep(self, subject: int, request: ExtractionRequest, answer: Answer, result: Extraction) -> str:
        try:
            _check_complete(answer)
            return self._kind.keep(subject, request, answer, result)
        except ReplyInvalid as error:
            _note(result, error)
            return INVALID

    def _connected(self) -> Provider:
        if self._provider is None:
            self._provider = self._open()
        return self._provider

    def _queue(self, result: Extraction, report: Reporter) -> Iterator[_Queued]:
        """Yield the requests to send. Those that failed before come last, so that they cannot block the others."""
        failed: list[int] = []
        subjects = self._kind.subjects(self._clock())
        for number, subject in enumerate(subjects):
            report("Selecting", number, len(subjects))
            request = self._kind.request(subject)
            if request is None:
                continue
            before = self._store.ledger.attempts(request.digest)
            if before.nothing:
                continue
            if before.failed >= _ATTEMPTS_MAX:
                result.given_up += 1
            elif before.calls:
                failed.append(subject)
            else:
                yield subject, request
        for subject in failed:
            if (request := self._kind.request(subject)) is not None:
                yield subject, request


def _check_complete(answer: Answer) -> None:
    """Raise `ReplyInvalid` if the model reached its limit of tokens, or refused to answer."""
    if answer.truncated:
        raise ReplyInvalid(f"the reply was truncated: {answer.truncated}", answer.raw)


def _note(result: Extraction, error: ExtractionError) -> None:
    result.failed += 1
    result.problem = str(error)


def _stop(message: str, status: int) -> ModelRefused:
    hint = "The sessions are sent again by a later run. Check the llm settings in config.toml, or choose another model."
    return ModelRefused(message, status, hint=hint)


class Trial(Struct, frozen=True):
    """Result of a trial call. `problem` is empty if the reply gave a card with `facts` proven facts."""

    seconds: float
    tokens_out: int
    title: str = ""
    facts: int = 0
    problem: str = ""


def try_model(store: Store, config: Config, prompts: Prompts) -> Trial:
    """Make one call with these settings.

    Raises:
        ExtractionError: The model gave no reply.
        BudgetExhausted: The budgets do not allow the call.
    """
    requests = RequestBuilder(prompts, config.llm_name, SessionReply)
    request, start = requests.build(0, shorten_session([_SESSION.exchange])), time.monotonic()
    provider = provider_of(config)()
    try:
        answer = BookedCalls(store, config, "trial").make(request.size, lambda: provider.ask(request.question))
        seconds = time.monotonic() - start
        verified = SessionVerifier([_SESSION], request.excerpt, "", "").verify(answer.text, answer.raw)
    except ReplyInvalid as error:
        return Trial(time.monotonic() - start, 0, problem=str(error))
    finally:
        provider.close()
    if verified is None:
        return Trial(seconds, answer.usage.tokens_out, problem="the model found nothing to keep")
    return Trial(seconds, answer.usage.tokens_out, verified.card.name, len(verified.card.facts))
