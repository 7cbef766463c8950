"""Session summaries by a language model.

Each session needs one call, and its result replaces the summary by rules. A session is sent after ten minutes without
activity, and again when it has grown. Its job is in the same queue as the jobs of exchanges, and has the key of the
first exchange of the session.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from ...archiver.store import SUMMARY_PREFIX, JobKind, Store, StoredExchange
from ...core.conversation import Milliseconds
from .excerpt import is_worth_asking, shorten_session
from .extraction_request import ExtractionRequest, ExtractionTemplates, RequestBuilder
from .model_errors import ReplyInvalid
from .private_projects import PrivateProjects
from .provider import Answer
from .session_reply import SessionReply, read_session_reply, verify_session_reply


class SessionSummaries:
    """Requests and results of the calls for sessions."""

    def __init__(self, store: Store, templates: ExtractionTemplates, model: str, private: PrivateProjects) -> None:
        self._store, self._private = store, private
        self._requests = RequestBuilder(templates, model, SUMMARY_PREFIX)
        self.extractor = self._requests.extractor

    def candidates(self, quiet_since: Milliseconds, *, outdated: bool) -> Iterator[ExtractionRequest]:
        """Yield a request for each session that needs a summary by the model, newest first."""
        for session in self._store.jobs.candidate_sessions(self.extractor, quiet_since, outdated=outdated):
            exchanges = self._exchanges(session)
            request = self._build(exchanges)
            if request is None or self._store.jobs.is_answered(request.exchange, request.digest, request.kind):
                continue
            if any(is_worth_asking(each.exchange, request.excerpt) for each in exchanges):
                yield request

    def request(self, exchange: int) -> ExtractionRequest | None:
        """Return the request about the session that starts with an exchange.

        Return None if the exchange was deleted, if it is no longer the first of its session, or if the session became
        private.
        """
        stored = self._store.exchanges.load([exchange]).get(exchange)
        request = None if stored is None else self._build(self._exchanges(stored.session))
        return request if request is not None and request.exchange == exchange else None

    def keep(self, request: ExtractionRequest, answer: Answer) -> tuple[bool, int]:
        """Store the summary in an answer, inside a transaction.

        Return whether the answer contains a summary, and the number of rejected facts.

        Raises:
            ReplyInvalid: The answer has no usable summary.
        """
        try:
            reply = read_session_reply(answer.text)
        except ReplyInvalid as error:
            raise ReplyInvalid(str(error), answer.raw) from None
        session = self._store.exchanges.load([request.exchange])[request.exchange].session
        exchanges = self._exchanges(session)
        summary, rejected = verify_session_reply(reply, exchanges, request.excerpt, self.extractor, answer.raw)
        if summary is not None:
            self._store.summaries.put(session, request.exchange, summary)
        return summary is not None, rejected

    def _exchanges(self, session: int) -> list[StoredExchange]:
        keys = self._store.summaries.newest_exchanges(session)
        loaded = self._store.exchanges.load(keys)
        return [loaded[key] for key in keys]

    def _build(self, exchanges: list[StoredExchange]) -> ExtractionRequest | None:
        """Return the request about these exchanges of a session.

        Return None if there are none or one of them is private.
        """
        if not exchanges or any(map(self._private.includes, exchanges)):
            return None
        excerpt = shorten_session([stored.exchange for stored in exchanges])
        return replace(self._requests.about(exchanges[0].key, excerpt), reply=SessionReply, kind=JobKind.SESSION)
