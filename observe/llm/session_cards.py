"""Session cards by a language model: one call returns the card of a session and up to five findings.

The card replaces the card by rules, and the findings replace the observations by rules of the exchanges that they
quote. Only facts that the session proves are kept. The sessions without a card of the current prompt are the queue. A
session is sent again when it has grown.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from ...archiver.store import FINDING_PREFIX, SUMMARY_PREFIX, Store, StoredExchange
from ...archiver.store.ledger_table import NOTHING
from ...core.conversation import Milliseconds, Origin
from ...core.observation import SUMMARY, Evidence, Observation, ObservationType
from ...core.reports import Extraction
from ...core.text import TITLE_MAX
from ..extraction.observation_writer import keep, summarise
from ..rules.notes import NoteLabel
from .extraction_request import (
    Excerpt,
    ExtractionRequest,
    ReplyFact,
    ReplyVerifier,
    RequestBuilder,
    is_worth_asking,
    shorten_session,
)
from .model_settings import PrivateProjects
from .provider import Answer, Prompts, ReplyInvalid, ReplyModel, bounded, parse_reply

_FACTS_MAX, _FINDINGS_MAX, _FINDING_FACTS_MAX = 14, 5, 4
_FILES: Final = 6
"""Maximum number of read files, and of changed files, of a card."""
_LABELS: Final[Mapping[str, NoteLabel]] = {
    "asked": NoteLabel.ASKED,
    "outcome": NoteLabel.OUTCOME,
    "decided": NoteLabel.DECIDED,
    "rule": NoteLabel.DECIDED,
    "cause": NoteLabel.CAUSE,
    "gotcha": NoteLabel.PITFALL,
    "open": NoteLabel.OPEN,
    "next": NoteLabel.NEXT,
}
"""Label of each kind of fact, in the order of the card. Cards by rules use the same labels."""
_TYPES: Final[Mapping[str, ObservationType]] = {
    "change": ObservationType.FEATURE,
    "fix": ObservationType.BUG_FIX,
    "decision": ObservationType.DECISION,
    "rule": ObservationType.DECISION,
    "cause": ObservationType.DEBUG,
    "gotcha": ObservationType.LEARNING,
}
QUIET_MS: Final = 600_000
"""Milliseconds without activity after which a session counts as finished."""


class CardFact(ReplyFact):
    """Fact of the card. `kind` is the part of the card that contains it."""

    kind: Literal["asked", "outcome", "decided", "rule", "cause", "gotcha", "open", "next"]


class Finding(ReplyModel):
    """One thing worth finding alone, as the model's reply states it."""

    type: Literal["change", "fix", "decision", "rule", "cause", "gotcha"]
    title: str = bounded(maxLength=TITLE_MAX)
    facts: list[ReplyFact] = bounded(maxItems=_FINDING_FACTS_MAX)


class SessionReply(ReplyModel):
    """Complete reply. The verdict `nothing` means that the session contains nothing to keep."""

    verdict: Literal["card", "nothing"]
    title: str = bounded(maxLength=TITLE_MAX)
    facts: list[CardFact] = bounded(maxItems=_FACTS_MAX)
    findings: list[Finding] = bounded(maxItems=_FINDINGS_MAX)


class VerifiedSession(Struct, frozen=True):
    """Card and findings with valid evidence.

    `findings` maps the key of an exchange to what was found in it, and `cited` contains the exchanges that findings
    quote. `rejected` counts facts and titles without evidence, and `cut` facts and texts above the size limits.
    """

    card: Observation
    findings: Mapping[int, list[Observation]]
    cited: frozenset[int]
    rejected: int
    cut: int


class SessionVerifier(ReplyVerifier):
    """Verifier of a reply about one session. `extractor` is the name for findings, `card_extractor` for the card."""

    def __init__(
        self, exchanges: Sequence[StoredExchange], excerpt: Excerpt, card_extractor: str, extractor: str
    ) -> None:
        super().__init__([stored.exchange for stored in exchanges], excerpt, extractor)
        self._exchanges, self._card_extractor = exchanges, card_extractor

    def verify(self, text: str, raw: str) -> VerifiedSession | None:
        """Return what a reply proves, or None if its verdict is `nothing`.

        Raises:
            ReplyInvalid: The reply has no valid structure, or no fact of the card is proven.
        """
        reply = parse_reply(text, SessionReply, raw)
        if reply.verdict == "nothing" and not reply.facts:
            return None
        order = list(_LABELS)
        proven = sorted(self.prove(reply.facts, _FACTS_MAX), key=lambda proof: order.index(proof[0].kind))
        if not proven:
            raise ReplyInvalid(f"the session proves none of the {len(reply.facts)} facts in the reply", raw)
        card = self._card(reply.title, proven)
        findings: dict[int, list[Observation]] = {}
        cited: set[int] = set()
        for finding in self.first(reply.findings, _FINDINGS_MAX):
            if facts := self.prove(finding.facts, _FINDING_FACTS_MAX):
                homes = Counter(self._home(evidence) for _, evidence in facts)
                home = self._exchanges[max(homes, key=lambda index: (homes[index], index))]
                cited.update(self._exchanges[index].key for index in homes)
                observation = self.observation(_TYPES[finding.type], finding.title, facts, home.exchange)
                findings.setdefault(home.key, []).append(observation)
        return VerifiedSession(card, findings, frozenset(cited), self.rejected, self.cut)

    def _home(self, evidence: Evidence) -> int:
        """Return the index of the exchange that contains a quote."""
        spans = [stored.exchange.span for stored in self._exchanges]
        return next(
            index for index, span in enumerate(spans) if span.start_line <= evidence.start_line <= span.end_line
        )

    def _card(self, title: str, proven: Sequence[tuple[CardFact, Evidence]]) -> Observation:
        exchanges = [stored.exchange for stored in self._exchanges]
        results = [proof for proof in proven if proof[0].kind == "outcome"]
        return Observation(
            type=ObservationType.GENERAL,
            title=SUMMARY + self.title(title.removeprefix(SUMMARY), results or proven),
            facts=tuple(f"{_LABELS[fact.kind]}: {self.text(fact.text)}" for fact, _ in proven),
            files_read=_frequent(path for exchange in exchanges for path in exchange.reads),
            files_modified=_frequent(path for exchange in exchanges for path in exchange.writes),
            evidence=tuple(evidence for _, evidence in proven),
            at=exchanges[-1].ended or exchanges[-1].started,
            origin=Origin.EXTERNAL if self._external else Origin.ASSISTANT,
            extractor=self._card_extractor,
        )


def _frequent(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(path for path, _ in Counter(paths).most_common(_FILES))


class SessionCards:
    """Requests and results of the calls for sessions."""

    reason = prompts = "session"

    def __init__(self, store: Store, prompts: Prompts, model: str, private: PrivateProjects) -> None:
        self._store, self._private = store, private
        self._requests = RequestBuilder(prompts, model, SessionReply)
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
        if any(is_worth_asking(stored.exchange, request.excerpt) for stored in exchanges):
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
            findings = verified.findings.get(stored.key, [])
            if findings or (stored.key in verified.cited and not stored.exchange.writes):
                keep(self._store, stored, loaded, findings, finding)
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
