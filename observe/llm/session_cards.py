"""Session cards by a language model: one call returns the card of a session and up to five findings.

The card replaces the card by rules, and the findings replace the observations by rules of the exchanges that they
quote. The sessions without a card of the current prompt are the queue. A session is sent again when it has grown.
"""

from collections.abc import Sequence
from typing import Final

from ...archiver.store import FINDING_PREFIX, SUMMARY_PREFIX, Store, StoredExchange
from ...archiver.store.ledger_table import NOTHING
from ...core.conversation import Milliseconds
from ...core.spending import Extraction
from ..extraction.observation_writer import keep, summarise
from .excerpt import is_worth_asking, shorten_session
from .extraction_request import ExtractionRequest, ExtractionTemplates, RequestBuilder
from .private_projects import PrivateProjects
from .provider import Answer
from .session_reply import SessionReply, SessionVerifier

QUIET_MS: Final = 600_000
"""Milliseconds without activity after which a session counts as finished."""


class SessionCards:
    """Requests and results of the calls for sessions."""

    reason = "session"

    def __init__(self, store: Store, templates: ExtractionTemplates, model: str, private: PrivateProjects) -> None:
        self._store, self._private = store, private
        self._requests = RequestBuilder(templates.of_sessions, model, SessionReply)
        self.skipped = self.private = 0

    def subjects(self, at: Milliseconds) -> list[int]:
        """Return the sessions to send."""
        return self._store.model_queue.sessions(self._requests.version, at - QUIET_MS)

    def request(self, session: int) -> ExtractionRequest | None:
        """Return the request about a session, or None if it is private or too short, which is counted."""
        exchanges = self._exchanges(session)
        if any(map(self._private.includes, exchanges)):
            self.private += 1
            return None
        request = self._build(session, exchanges)
        if any(is_worth_asking(each.exchange, request.excerpt) for each in exchanges):
            return request
        self.skipped += 1
        return None

    def keep(self, session: int, request: ExtractionRequest, answer: Answer, report: Extraction) -> str:
        """Store the card and the findings of an answer, inside a transaction. Return the outcome.

        An answer about a session that has grown since is discarded.

        Raises:
            ReplyInvalid: The answer has no usable card.
        """
        exchanges = self._exchanges(session)
        if not exchanges or self._build(session, exchanges).digest != request.digest:
            return "outdated"
        extractor, finding = (f"{prefix}{self._requests.name}" for prefix in (SUMMARY_PREFIX, FINDING_PREFIX))
        verified = SessionVerifier(exchanges, request.excerpt, extractor, finding).verify(answer.text, answer.raw)
        if verified is None:
            report.nothing += 1
            return NOTHING
        self._store.model_queue.release_findings(session)
        loaded = self._store.sessions.load(session)
        for stored in exchanges:
            found = verified.findings.get(stored.key, [])
            if found or (stored.key in verified.cited and not stored.exchange.writes):
                keep(self._store, stored, loaded, found, finding)
        self._store.summaries.put(session, request.exchange, verified.card)
        summarise(self._store, [session])
        report.cards += 1
        report.observations += sum(map(len, verified.findings.values()))
        report.refused += verified.rejected
        report.cut += verified.cut
        return "card"

    def _exchanges(self, session: int) -> list[StoredExchange]:
        keys = self._store.summaries.newest_exchanges(session)
        loaded = self._store.exchanges.load(keys)
        return [loaded[key] for key in keys]

    def _build(self, session: int, exchanges: Sequence[StoredExchange]) -> ExtractionRequest:
        folder = self._store.sessions.load(session).cwd
        return self._requests.build(
            exchanges[0].key, shorten_session([stored.exchange for stored in exchanges], folder)
        )
