"""Extraction replies: parse the model's JSON and keep the facts whose quote occurs in the conversation.

Palaver, not the model, sets files, dates and origin.
"""

from collections.abc import Sequence
from typing import Final, Literal

from pydantic import ValidationError

from ...archiver.store import StoredExchange
from ...core.observation import Evidence, Observation, ObservationType
from ...core.origin import Origin
from ..rules.verification import VerifiedObservations, find_quote, includes_external
from .excerpt import Excerpt, Passage, visible
from .messages_api import ReplyModel, parse_reply
from .model_errors import ReplyInvalid

_QUOTE_MIN: Final = 8
_QUOTE_MAX: Final = 240
_OBSERVATIONS_MAX, _FACTS_MAX, _CONCEPTS_MAX = 4, 8, 8
_TITLE, _SUBTITLE, _NARRATIVE, _FACT, _CONCEPT = 120, 160, 900, 320, 40
"""Maximum characters of each field."""

TypeName = Literal[
    "decision", "bug-fix", "pattern", "feature", "refactor", "learning", "debug", "test", "config", "general"
]


class ReplyFact(ReplyModel):
    """Fact with the quote that proves it and the line of the quote."""

    text: str
    line: int
    quote: str


class ReplyObservation(ReplyModel):
    """Observation in the model's words."""

    type: TypeName
    title: str
    subtitle: str
    narrative: str
    facts: list[ReplyFact]
    concepts: list[str]


class Reply(ReplyModel):
    """Complete reply. The verdict `nothing` means that the exchange contains nothing to learn."""

    verdict: Literal["learned", "nothing"]
    observations: list[ReplyObservation]


def read_reply(text: str) -> Reply:
    """Parse a reply.

    Raises:
        ReplyInvalid: The text is not JSON, has an unexpected structure, or contradicts its own verdict.
    """
    try:
        reply = parse_reply(text, Reply)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ReplyInvalid(
            f"the reply does not have the expected structure: {place or 'JSON'}: {first['msg']}", text
        ) from None
    if (reply.verdict == "nothing") != (not reply.observations):
        raise ReplyInvalid(
            f"the verdict is `{reply.verdict}`, but the reply has {len(reply.observations)} observations", text
        )
    return reply


def verify_reply(
    reply: Reply, stored: StoredExchange, excerpt: Excerpt, extractor: str, raw: str
) -> VerifiedObservations:
    """Return the observations that have at least one fact with a valid quote.

    Raises:
        ReplyInvalid: The reply has observations, but no fact has a valid quote.
    """
    origin = Origin.EXTERNAL if includes_external(stored.exchange) else Origin.ASSISTANT
    kept: list[Observation] = []
    rejected = 0
    for extracted in reply.observations[:_OBSERVATIONS_MAX]:
        proofs = [(fact, _find_evidence(fact, excerpt.passages)) for fact in extracted.facts[:_FACTS_MAX]]
        proven = [(fact, evidence) for fact, evidence in proofs if evidence is not None]
        rejected += len(proofs) - len(proven)
        if proven and extracted.title.strip():
            kept.append(_observation(extracted, proven, stored, origin, extractor))
    if reply.observations and not kept:
        raise ReplyInvalid(f"the conversation contains none of the {rejected} quotes in the reply", raw)
    return VerifiedObservations(tuple(dict.fromkeys(kept)), rejected)


def _observation(
    extracted: ReplyObservation,
    proven: Sequence[tuple[ReplyFact, Evidence]],
    stored: StoredExchange,
    origin: Origin,
    extractor: str,
) -> Observation:
    return Observation(
        type=ObservationType(extracted.type),
        title=_one_line(extracted.title, _TITLE),
        subtitle=_one_line(extracted.subtitle, _SUBTITLE),
        narrative=_one_line(extracted.narrative, _NARRATIVE),
        facts=tuple(_one_line(fact.text, _FACT) for fact, _ in proven),
        concepts=tuple(dict.fromkeys(_one_line(word.lower(), _CONCEPT) for word in extracted.concepts[:_CONCEPTS_MAX])),
        files_read=stored.exchange.reads,
        files_modified=stored.exchange.writes,
        evidence=tuple(evidence for _, evidence in proven),
        at=stored.exchange.ended or stored.exchange.started,
        origin=origin,
        extractor=extractor,
    )


def _find_evidence(fact: ReplyFact, passages: Sequence[Passage]) -> Evidence | None:
    """Return the quote as written in the source: on its stated line, or else on the only line that contains it."""
    words = fact.quote.strip().strip("\"'“”…").split()
    if not fact.text.strip() or not _QUOTE_MIN <= len(" ".join(words)) <= _QUOTE_MAX:
        return None
    return find_quote(" ".join(words), fact.line, [(passage.line, passage.turn.text) for passage in passages])


def _one_line(text: str, chars: int) -> str:
    """Return the text as a single line, truncated to a number of characters."""
    whole = " ".join(visible(text).split())
    return whole if len(whole) <= chars else f"{whole[: chars - 1].rstrip()}…"
