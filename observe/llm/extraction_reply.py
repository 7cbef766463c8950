"""Parser of extraction replies, which keeps only the facts that the conversation proves.

A fact is kept if its quote and all its names, numbers and paths occur in the conversation. Palaver, not the model, sets
files, dates and origin.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal, TypeVar

from pydantic import ValidationError

from ...archiver.store import StoredExchange
from ...core.observation import Evidence, Observation, ObservationType
from ...core.origin import Origin, least
from ...core.text import visible
from ..rules.verification import VerifiedObservations, find_quote, includes_external
from .excerpt import ERROR, Excerpt, Passage
from .grounding import SourceText
from .model_errors import ReplyInvalid
from .model_request import ReplyModel, ReplyT, parse_reply

_QUOTE_MIN: Final = 8
_QUOTE_MAX: Final = 240
_OBSERVATIONS_MAX, _FACTS_MAX, _CONCEPTS_MAX = 4, 8, 8
_TITLE, _SUBTITLE, _NARRATIVE, _FACT, _CONCEPT = 120, 160, 900, 320, 40
"""Maximum characters of each field."""
_ORIGINS: Final = {"human": Origin.HUMAN, ERROR: Origin.TOOL}
"""Origin of quotes by speaker. All other text counts as the assistant's."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")

TypeName = Literal[
    "decision", "bug-fix", "pattern", "feature", "refactor", "learning", "debug", "test", "config", "general"
]


class ReplyFact(ReplyModel):
    """Fact with the quote that proves it and the line of the quote."""

    text: str
    line: int
    quote: str


FactT = TypeVar("FactT", bound=ReplyFact)


class ReplyObservation(ReplyModel):
    """Observation as the model's reply states it."""

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
    reply = validate(text, Reply)
    if (reply.verdict == "nothing") != (not reply.observations):
        raise ReplyInvalid(
            f"the verdict is `{reply.verdict}`, but the reply has {len(reply.observations)} observations", text
        )
    return reply


def validate(text: str, model: type[ReplyT]) -> ReplyT:
    """Parse a reply that must have the structure of `model`.

    Raises:
        ReplyInvalid: The text is not JSON or has an unexpected structure.
    """
    try:
        return parse_reply(text, model)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ReplyInvalid(
            f"the reply does not have the expected structure: {place or 'JSON'}: {first['msg']}", text
        ) from None


def verify_reply(
    reply: Reply, stored: StoredExchange, excerpt: Excerpt, extractor: str, raw: str
) -> VerifiedObservations:
    """Return the observations that have a proven title and at least one proven fact.

    Raises:
        ReplyInvalid: The reply has observations, but none of them is proven.
    """
    exchange = stored.exchange
    texts = (passage.turn.text for passage in excerpt.passages)
    source = SourceText((*texts, *exchange.reads, *exchange.writes))
    kept: list[Observation] = []
    rejected = 0
    for extracted in reply.observations[:_OBSERVATIONS_MAX]:
        facts = extracted.facts[:_FACTS_MAX]
        proven = prove_facts(facts, excerpt, source) if source.contains_names_of(extracted.title) else []
        rejected += len(facts) - len(proven)
        if proven and extracted.title.strip():
            kept.append(_observation(extracted, proven, stored, excerpt, source, extractor))
    if reply.observations and not kept:
        raise ReplyInvalid(f"the conversation proves none of the {rejected} facts in the reply", raw)
    return VerifiedObservations(tuple(dict.fromkeys(kept)), rejected)


def prove_facts(facts: Sequence[FactT], excerpt: Excerpt, source: SourceText) -> list[tuple[FactT, Evidence]]:
    """Return the facts whose quote and names occur in the source, each with its evidence."""
    proofs = [(fact, _find_evidence(fact, excerpt.passages)) for fact in facts if source.contains_names_of(fact.text)]
    return [(fact, evidence) for fact, evidence in proofs if evidence is not None]


def keep_proven_sentences(text: str, source: SourceText) -> str:
    """Return the sentences of a text that contain only names from the source."""
    return " ".join(each for each in _SENTENCE_END.split(text) if source.contains_names_of(each))


def _observation(
    extracted: ReplyObservation,
    proven: Sequence[tuple[ReplyFact, Evidence]],
    stored: StoredExchange,
    excerpt: Excerpt,
    source: SourceText,
    extractor: str,
) -> Observation:
    evidence = tuple(each for _, each in proven)
    external = includes_external(stored.exchange)
    concepts = [word for word in extracted.concepts if source.contains_names_of(word)]
    return Observation(
        type=ObservationType(extracted.type),
        title=one_line(extracted.title, _TITLE),
        subtitle=one_line(keep_proven_sentences(extracted.subtitle, source), _SUBTITLE),
        narrative=one_line(keep_proven_sentences(extracted.narrative, source), _NARRATIVE),
        facts=tuple(one_line(fact.text, _FACT) for fact, _ in proven),
        concepts=tuple(dict.fromkeys(one_line(word.lower(), _CONCEPT) for word in concepts[:_CONCEPTS_MAX])),
        files_read=stored.exchange.reads,
        files_modified=stored.exchange.writes,
        evidence=evidence,
        at=stored.exchange.ended or stored.exchange.started,
        origin=_origin([extracted.title, *(fact.text for fact, _ in proven)], evidence, excerpt, external=external),
        extractor=extractor,
    )


def _origin(sentences: Sequence[str], evidence: Sequence[Evidence], excerpt: Excerpt, *, external: bool) -> Origin:
    """Return the least trusted origin of all quotes, or `Origin.EXTERNAL` if `external` is set.

    `external` is True if the exchange contains text from outside this machine. The origin is `human` only if all quotes
    are the user's words, and the quoted messages contain at least half of the longer words of each sentence. Without
    this rule, a harmless quote of the user could make injected text count as the user's words.
    """
    if external:
        return Origin.EXTERNAL
    quoted = [
        next(
            passage
            for passage in excerpt.passages
            if passage.line == each.start_line and each.quote in passage.turn.text
        )
        for each in evidence
    ]
    origins = {_ORIGINS.get(passage.voice, Origin.ASSISTANT) for passage in quoted}
    said = SourceText(passage.turn.text for passage in quoted)
    if origins == {Origin.HUMAN} and not all(map(said.shares_words_with, sentences)):
        return Origin.ASSISTANT
    return least(origins)


def _find_evidence(fact: ReplyFact, passages: Sequence[Passage]) -> Evidence | None:
    """Find the quote on its stated line, or else on the only line that contains it.

    Return the quote as written in the source.
    """
    quote = " ".join(fact.quote.split())
    if not fact.text.strip() or not _QUOTE_MIN <= len(quote) <= _QUOTE_MAX:
        return None
    return find_quote(quote, fact.line, [(passage.line, passage.turn.text) for passage in passages])


def one_line(text: str, chars: int) -> str:
    """Return the text as a single line, truncated to a number of characters."""
    whole = " ".join(visible(text).split())
    return whole if len(whole) <= chars else f"{whole[: chars - 1].rstrip()}…"
