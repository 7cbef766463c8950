"""Observations of single exchanges by a language model, one call each. They replace those of the rules."""

from ...archiver.store import MODEL_PREFIX, Store, StoredExchange
from ...archiver.store.ledger_table import NOTHING
from ...core.conversation import Milliseconds
from ...core.observation import Observation
from ...core.spending import Extraction
from ..extraction.observation_writer import keep, summarise
from ..rules.verification import includes_external
from .excerpt import is_worth_asking, last_answer, shorten
from .extraction_reply import Reply, verify_reply
from .extraction_request import ExtractionRequest, ExtractionTemplates, RequestBuilder
from .private_projects import PrivateProjects
from .provider import Answer

_KNOWN_MAX = 10
"""Maximum number of earlier observations of the session in a request."""


class SingleExchanges:
    """Requests and results of the calls for single exchanges."""

    reason = "exchange"

    def __init__(self, store: Store, templates: ExtractionTemplates, model: str, private: PrivateProjects) -> None:
        self._store, self._private = store, private
        self._requests = RequestBuilder(templates, model, Reply)
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
        known = self._store.observations.of_exchange(stored.key)
        return [each.observation for each in known if not each.summary]

    def _build(self, stored: StoredExchange) -> ExtractionRequest:
        """Return a request with earlier observations of the session and the answer before the prompt.

        Text of private folders is omitted.
        """
        latest = self._store.observations.latest(stored.session, stored.key, _KNOWN_MAX)
        keys = self._store.summaries.newest_exchanges(stored.session)
        before = [key for key in keys if key < stored.key][-1:]
        loaded = self._store.exchanges.load([*(each.exchange for each in latest), *before])
        public = {key for key, each in loaded.items() if not self._private.includes(each)}
        known = [each.observation.title for each in latest if each.exchange in public]
        answers = [last_answer(loaded[key].exchange) for key in before if key in public]
        excerpt = shorten(stored.exchange, self._store.sessions.load(stored.session).cwd)
        return self._requests.build(stored.key, excerpt, known, "".join(answers))
