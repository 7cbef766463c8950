"""Session cards by a language model: one call returns the card of a session and up to five findings.

The card replaces the card by rules, and the findings replace the observations by rules of the exchanges that they
quote. Only facts that the session proves are kept. The sessions without a card of the current prompt are the queue. A
session is sent again when it has grown.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from ...archiver.store import FINDING_PREFIX, SUMMARY_PREFIX, Store, StoredExchange
from ...archiver.store.ledger_table import NOTHING
from ...core.conversation import Milliseconds, Origin
from ...core.observation import SUMMARY, Evidence, Observation, ObservationType
from ...core.reports import Extraction
from ...core.text import TITLE_MAX
from ..extraction.observation_writer import keep, summarise
from ..rules.exchange_analysis import includes_external
from ..rules.notes import NoteLabel
from .extraction_request import (
    Excerpt,
    ExtractionRequest,
    FactT,
    Limits,
    ReplyFact,
    RequestBuilder,
    is_worth_asking,
    origin_of,
    prove_facts,
    proven_title,
    read,
    shorten_session,
)
from .grounding import SourceText
from .model_settings import PrivateProjects
from .provider import Answer, Prompts, ReplyInvalid, ReplyModel, bounded

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


class SessionVerifier:
    """Verifier of the replies about one session.

    Args:
        exchanges: Exchanges that the model has read, in order.
        excerpt: Text that the model has read.
        extractor: Name of the extractor, for the card and for findings.
    """

    def __init__(
        self, exchanges: Sequence[StoredExchange], excerpt: Excerpt, extractor: str, finding_extractor: str
    ) -> None:
        self._exchanges, self._excerpt = exchanges, excerpt
        self._extractor, self._finding_extractor = extractor, finding_extractor
        self._read = Counter(path for stored in exchanges for path in stored.exchange.reads)
        self._modified = Counter(path for stored in exchanges for path in stored.exchange.writes)
        texts = (passage.turn.text for passage in excerpt.passages)
        self._source = SourceText((*texts, *self._read, *self._modified))
        self._external = any(includes_external(stored.exchange) for stored in exchanges)
        self._limits, self._rejected = Limits(excerpt.root), 0

    def verify(self, text: str, raw: str) -> VerifiedSession | None:
        """Return what a reply proves, or None if its verdict is `nothing`.

        Raises:
            ReplyInvalid: The reply has no valid structure, or no fact of the card is proven.
        """
        reply = read(text, SessionReply, raw)
        if reply.verdict == "nothing" and not reply.facts:
            return None
        order = list(_LABELS)
        proven = sorted(self._proven(reply.facts, _FACTS_MAX), key=lambda proof: order.index(proof[0].kind))
        if not proven:
            raise ReplyInvalid(f"the session proves none of the {len(reply.facts)} facts in the reply", raw)
        results = [proof for proof in proven if proof[0].kind == "outcome"]
        card = self._card(self._title(reply.title, results or proven), proven)
        findings: dict[int, list[Observation]] = {}
        cited: set[int] = set()
        for finding in self._limits.first(reply.findings, _FINDINGS_MAX):
            facts = self._proven(finding.facts, _FINDING_FACTS_MAX)
            if facts:
                title = self._title(finding.title, facts)
                homes = Counter(self._home(evidence) for _, evidence in facts)
                home = max(homes, key=lambda index: (homes[index], index))
                cited.update(self._exchanges[index].key for index in homes)
                observation = self._observation(finding.type, title, facts, self._exchanges[home])
                findings.setdefault(self._exchanges[home].key, []).append(observation)
        return VerifiedSession(card, findings, frozenset(cited), self._rejected, self._limits.cut)

    def _proven(self, facts: Sequence[FactT], most: int) -> list[tuple[FactT, Evidence]]:
        within = self._limits.first(facts, most)
        proven = prove_facts(within, self._excerpt, self._source)
        self._rejected += len(within) - len(proven)
        return proven

    def _title(self, title: str, proven: Sequence[tuple[ReplyFact, Evidence]]) -> str:
        """Return a title with names of the session only. Another title is counted, and replaced by the first fact."""
        kept = proven_title(title, proven, self._source)
        self._rejected += kept != title
        return kept

    def _home(self, evidence: Evidence) -> int:
        """Return the index of the exchange that contains a quote."""
        spans = [stored.exchange.span for stored in self._exchanges]
        return next(
            index for index, span in enumerate(spans) if span.start_line <= evidence.start_line <= span.end_line
        )

    def _card(self, title: str, proven: Sequence[tuple[CardFact, Evidence]]) -> Observation:
        last = self._exchanges[-1].exchange
        return Observation(
            type=ObservationType.GENERAL,
            title=SUMMARY + self._limits.title(title.removeprefix(SUMMARY)),
            facts=tuple(f"{_LABELS[fact.kind]}: {self._limits.text(fact.text)}" for fact, _ in proven),
            files_read=_frequent(self._read),
            files_modified=_frequent(self._modified),
            evidence=tuple(evidence for _, evidence in proven),
            at=last.ended or last.started,
            origin=Origin.EXTERNAL if self._external else Origin.ASSISTANT,
            extractor=self._extractor,
        )

    def _observation(
        self, kind: str, title: str, proven: Sequence[tuple[ReplyFact, Evidence]], stored: StoredExchange
    ) -> Observation:
        evidence = tuple(proof for _, proof in proven)
        sentences = [title, *(fact.text for fact, _ in proven)]
        return Observation(
            type=_TYPES[kind],
            title=self._limits.title(title),
            facts=tuple(self._limits.text(fact.text) for fact, _ in proven),
            files_read=stored.exchange.reads,
            files_modified=stored.exchange.writes,
            evidence=evidence,
            at=stored.exchange.ended or stored.exchange.started,
            origin=origin_of(sentences, evidence, self._excerpt, external=self._external),
            extractor=self._finding_extractor,
        )


def _frequent(counted: Counter[str]) -> tuple[str, ...]:
    return tuple(name for name, _ in counted.most_common(_FILES))


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
