"""Parser of extraction replies, which keeps only the facts that the conversation proves.

A fact is kept if its quote and all its names, numbers and paths occur in the conversation. Palaver, not the model, sets
files, dates and origin. The limits of size apply to titles and texts only, not to quotes and paths.
"""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from pydantic import ValidationError

from ...archiver.store import StoredExchange
from ...core.observation import Evidence, Observation, ObservationType
from ...core.origin import Origin, least
from ...core.sentences import TITLE_MAX, headline, truncate
from ...core.text import visible
from ..rules.verification import find_quote, includes_external
from .excerpt import ERROR, Excerpt
from .grounding import SourceText
from .model_errors import ReplyInvalid
from .model_request import ReplyModel, ReplyT, bounded, parse_reply

_QUOTE_MIN: Final = 8
_QUOTE_MAX: Final = 240
_OBSERVATIONS_MAX, _FACTS_MAX, _CONCEPTS_MAX = 4, 8, 8
FACT_MAX: Final = 280
_SUBTITLE, _NARRATIVE, _CONCEPT = 160, 900, 40
"""Maximum characters of each field."""
_ORIGINS: Final = {"human": Origin.HUMAN, ERROR: Origin.TOOL}
"""Origin of quotes by speaker. All other text counts as the assistant's."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+")

TypeName = Literal[
    "decision", "bug-fix", "pattern", "feature", "refactor", "learning", "debug", "test", "config", "general"
]


class ReplyFact(ReplyModel):
    """Fact with the quote that proves it and the line of the quote."""

    text: str = bounded(maxLength=FACT_MAX)
    line: int
    quote: str = bounded(maxLength=_QUOTE_MAX)


FactT = TypeVar("FactT", bound=ReplyFact)
ItemT = TypeVar("ItemT")


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


class Limits:
    """Limits of titles and texts. `cut` counts what was left out or shortened.

    `root` is the folder of the session, to which paths are made relative.
    """

    def __init__(self, root: str = "") -> None:
        self._root, self.cut = root, 0

    def first(self, items: Sequence[ItemT], most: int) -> Sequence[ItemT]:
        """Return the first items."""
        self.cut += max(0, len(items) - most)
        return items[:most]

    def title(self, text: str) -> str:
        """Return a whole title of at most 90 characters."""
        plain = self.text(text, len(text))
        if len(plain) <= TITLE_MAX:
            return plain
        self.cut += 1
        return headline(plain) or truncate(plain, TITLE_MAX)

    def text(self, text: str, most: int = FACT_MAX) -> str:
        """Return a text as a single line, shortened at the end of a sentence or clause."""
        plain = one_line(text)
        plain = plain.replace(self._root, "") if self._root else plain
        self.cut += len(plain) > most
        return truncate(plain, most)


def read(text: str, model: type[ReplyT], raw: str) -> ReplyT:
    """Parse a reply that must have the structure of `model`. `raw` is the whole response of the provider.

    Raises:
        ReplyInvalid: The text is not JSON or has an unexpected structure.
    """
    try:
        return parse_reply(text, model)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ReplyInvalid(
            f"the reply does not have the expected structure: {place or 'JSON'}: {first['msg']}", raw
        ) from None


class VerifiedReply(Struct, frozen=True):
    """Observations with valid evidence, and the numbers of facts without evidence and of texts that were cut."""

    observations: tuple[Observation, ...]
    rejected: int = 0
    cut: int = 0


def verify_reply(text: str, stored: StoredExchange, excerpt: Excerpt, extractor: str, raw: str) -> VerifiedReply:
    """Return the observations of a reply that have a proven title and at least one proven fact.

    Raises:
        ReplyInvalid: The reply has no valid structure, or it has observations, but none of them is proven.
    """
    reply, exchange, limits = read(text, Reply, raw), stored.exchange, Limits(excerpt.root)
    if (reply.verdict == "nothing") != (not reply.observations):
        found = len(reply.observations)
        raise ReplyInvalid(f"the verdict is `{reply.verdict}`, but the reply has {found} observations", raw)
    texts = (passage.turn.text for passage in excerpt.passages)
    source = SourceText((*texts, *exchange.reads, *exchange.writes))
    kept: list[Observation] = []
    rejected = 0
    for extracted in limits.first(reply.observations, _OBSERVATIONS_MAX):
        facts = limits.first(extracted.facts, _FACTS_MAX)
        proven = prove_facts(facts, excerpt, source) if source.contains_names_of(extracted.title) else []
        rejected += len(facts) - len(proven)
        if proven and extracted.title.strip():
            kept.append(_observation(extracted, proven, stored, excerpt, source, limits, extractor))
    if reply.observations and not kept:
        raise ReplyInvalid(f"the conversation proves none of the {rejected} facts in the reply", raw)
    return VerifiedReply(tuple(dict.fromkeys(kept)), rejected, limits.cut)


def prove_facts(facts: Sequence[FactT], excerpt: Excerpt, source: SourceText) -> list[tuple[FactT, Evidence]]:
    """Return the facts whose quote and names occur in the source, each with its evidence."""
    proofs = [(fact, _find_evidence(fact, excerpt)) for fact in facts if source.contains_names_of(fact.text)]
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
    limits: Limits,
    extractor: str,
) -> Observation:
    evidence = tuple(each for _, each in proven)
    external = includes_external(stored.exchange)
    concepts = [word for word in extracted.concepts if source.contains_names_of(word)]
    return Observation(
        type=ObservationType(extracted.type),
        title=limits.title(extracted.title),
        subtitle=limits.text(keep_proven_sentences(extracted.subtitle, source), _SUBTITLE),
        narrative=limits.text(keep_proven_sentences(extracted.narrative, source), _NARRATIVE),
        facts=tuple(limits.text(fact.text) for fact, _ in proven),
        concepts=tuple(dict.fromkeys(limits.text(word.lower(), _CONCEPT) for word in concepts[:_CONCEPTS_MAX])),
        files_read=stored.exchange.reads,
        files_modified=stored.exchange.writes,
        evidence=evidence,
        at=stored.exchange.ended or stored.exchange.started,
        origin=origin_of([extracted.title, *(fact.text for fact, _ in proven)], evidence, excerpt, external=external),
        extractor=extractor,
    )


def origin_of(sentences: Sequence[str], evidence: Sequence[Evidence], excerpt: Excerpt, *, external: bool) -> Origin:
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


def _find_evidence(fact: ReplyFact, excerpt: Excerpt) -> Evidence | None:
    """Find the quote on its stated line, or else on the only line that contains it.

    Return the quote as written in the source, where paths are absolute.
    """
    quote = " ".join(fact.quote.split())
    if not fact.text.strip() or not _QUOTE_MIN <= len(quote) <= _QUOTE_MAX:
        return None
    written = [(passage.line, passage.turn.text) for passage in excerpt.passages]
    if (evidence := find_quote(quote, fact.line, written)) is not None or not excerpt.root:
        return evidence
    shown = [(line, text.replace(excerpt.root, "")) for line, text in written if excerpt.root in text]
    if (evidence := find_quote(quote, fact.line, shown)) is None:
        return None
    for line, text in written:
        if line == evidence.start_line and (whole := _with_root(evidence.quote, text, excerpt.root)):
            return replace(evidence, quote=whole)
    return None


def _with_root(quote: str, text: str, root: str) -> str:
    """Return a quote from a text with relative paths as it stands in the text. Return an empty text if it does not."""
    start = text.replace(root, "").find(quote)
    if start < 0:
        return ""
    lengths = [len(piece) for piece in text.split(root)]
    places = list(accumulate(lengths[:-1]))
    """Positions in the text with relative paths at which the folder was removed."""
    end = start + len(quote)
    first = start + len(root) * sum(place <= start for place in places)
    return text[first : end + len(root) * sum(place < end for place in places)]


def one_line(text: str) -> str:
    """Return the text as a single line without invisible characters."""
    return " ".join(visible(text).split())
