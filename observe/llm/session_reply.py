"""Parser of session replies, which keeps only the facts of a card and of findings that the session proves."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from ...archiver.store import StoredExchange
from ...core.observation import SUMMARY, Evidence, Observation, ObservationType
from ...core.origin import Origin
from ...core.sentences import TITLE_MAX
from ..rules.handoff_notes import NoteLabel
from ..rules.verification import includes_external
from .excerpt import Excerpt
from .extraction_reply import FactT, Limits, ReplyFact, origin_of, prove_facts, read
from .grounding import SourceText
from .model_errors import ReplyInvalid
from .model_request import ReplyModel, bounded

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
    quote. `rejected` counts facts without evidence, and `cut` facts and texts above the size limits.
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
            ReplyInvalid: The reply has no valid structure, the title contains a name that does not occur in the
                session, or no fact of the card is proven.
        """
        reply = read(text, SessionReply, raw)
        if reply.verdict == "nothing" and not reply.facts:
            return None
        if not reply.title.strip() or not self._source.contains_names_of(reply.title):
            raise ReplyInvalid("the title of the reply contains a name that does not occur in the session", raw)
        order = list(_LABELS)
        proven = sorted(self._proven(reply.facts, _FACTS_MAX), key=lambda each: order.index(each[0].kind))
        if not proven:
            raise ReplyInvalid(f"the session proves none of the {len(reply.facts)} facts in the reply", raw)
        card = self._card(reply.title, proven)
        findings: dict[int, list[Observation]] = {}
        cited: set[int] = set()
        for finding in self._limits.first(reply.findings, _FINDINGS_MAX):
            facts = self._proven(finding.facts, _FINDING_FACTS_MAX)
            if facts and finding.title.strip() and self._source.contains_names_of(finding.title):
                homes = Counter(self._home(evidence) for _, evidence in facts)
                home = max(homes, key=lambda each: (homes[each], each))
                cited.update(self._exchanges[place].key for place in homes)
                observation = self._observation(finding, facts, self._exchanges[home])
                findings.setdefault(self._exchanges[home].key, []).append(observation)
        return VerifiedSession(card, findings, frozenset(cited), self._rejected, self._limits.cut)

    def _proven(self, facts: Sequence[FactT], most: int) -> list[tuple[FactT, Evidence]]:
        within = self._limits.first(facts, most)
        proven = prove_facts(within, self._excerpt, self._source)
        self._rejected += len(within) - len(proven)
        return proven

    def _home(self, evidence: Evidence) -> int:
        """Return the index of the exchange that contains a quote."""
        spans = [stored.exchange.span for stored in self._exchanges]
        return next(
            place for place, span in enumerate(spans) if span.start_line <= evidence.start_line <= span.end_line
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
        self, finding: Finding, proven: Sequence[tuple[ReplyFact, Evidence]], stored: StoredExchange
    ) -> Observation:
        evidence = tuple(each for _, each in proven)
        sentences = [finding.title, *(fact.text for fact, _ in proven)]
        return Observation(
            type=_TYPES[finding.type],
            title=self._limits.title(finding.title),
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
