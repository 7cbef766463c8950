"""Choice of the best answer: a sentence with the words of the question, or the reply to the same question.

Without such a sentence, or if another conversation has one that is about as good, no answer is called the best.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from ...core import ids
from ...core.conversation import Exchange, Origin
from ...core.observation import ObservationType
from ...core.query import HitKind
from ...core.results import AnswerLabel, Detail
from ...core.text import is_statement, sentences_of, shorten
from ...observe.rules.salience import QUESTION_WORDS
from ...observe.rules.statements import names_cause
from ...search.query.relevance import Relevance, alternatives, key_words
from .citation_check import Claim
from .evidence_search import CITED, FoundEvidence, MeteredArchive, texts_of

_SHARE: Final = 0.6
"""Minimum share of the question's words in the sentence that answers it. Rare words weigh more.

Of 80 questions about 257 sessions, the best sentences for the 20 without an answer have at most 0.54. Wrong sentences
have up to 0.24 more than those of another conversation.
"""
_MARGIN: Final = 0.25
"""Minimum by which this share exceeds that of the best sentence of each other conversation."""
_LACKING: Final = 4
"""A sentence may lack one of so many words of the question. A user's decision may lack one of fewer words."""
_READ: Final = 3
"""Number of conversations whose prompts and replies are compared with the question."""
_PROMPT_MAX: Final = 600
"""Maximum characters of a prompt that asks one question. A longer one contains many words by chance."""
_REPLY: Final = 320
"""Maximum characters of the beginning of a reply that is quoted as the answer."""
_ASKS: Final = re.compile(
    rf"""\? | (?:\A|[.!\n]\s*)(?:{QUESTION_WORDS})\b
    | \b(?:{QUESTION_WORDS})\s+(?:happens?|is|are|was|were|do|does|did|has|have|can|could|should|would|will)\b
    | \b(?:check|explain|investigate|tell\ me|you\ see)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for a prompt that asks something."""
_FINDINGS: Final = ("Cause: ", "Gotcha: ", "Decided: ")
"""Labels of a session card whose facts can answer a question. The others name the work, as titles do."""
_EXPLAINED: Final = {ObservationType.BUG_FIX, ObservationType.DEBUG, ObservationType.LEARNING}
"""Types of observations that answer the problem or question in their request."""


class _Candidate(NamedTuple):
    """Answer: its relevance, the path of its conversation, the entry or the ID of it, and the sentence that answers."""

    share: float
    path: str
    detail: Detail | None
    public: str
    claim: Claim | None


def with_best_answer(archive: MeteredArchive, found: FoundEvidence, question: str) -> FoundEvidence:
    """Move the entry with the best answer to the front, or else call all entries the closest passages."""
    if found.label is AnswerLabel.LATEST or not found.details or found.absent:
        return found
    candidates = [*_asked(archive, found, question), *_stated(found, question)]
    best = max(candidates, key=lambda candidate: (_is_decision(candidate.detail), candidate.share), default=None)
    if best is None:
        return found
    rival = max((one.share for one in _all_shares(found) if one.path != best.path), default=0.0)
    if best.share - rival < _MARGIN:
        return found
    detail = best.detail or archive.details([best.public])[0]
    others = [
        one
        for one in found.details
        if one.id != detail.id and any(map(found.relevance.share, texts_of(one, found.claims)))
    ]
    claims = found.claims.get(detail.id, [])
    with_answer = [best.claim, *claims] if best.claim and best.claim not in claims else claims
    return replace(
        found,
        details=(detail, *others[: CITED - 1]),
        claims={**found.claims, detail.id: with_answer},
        label=AnswerLabel.BEST,
        answer=best.claim,
    )


def _is_decision(detail: Detail | None) -> bool:
    """Return whether an entry is a decision of the user, which comes before the words of an agent."""
    if detail is None:
        return False
    return detail.observation.type is ObservationType.DECISION and detail.observation.origin == Origin.HUMAN


def _all_shares(found: FoundEvidence) -> Iterator[_Candidate]:
    for detail in found.details:
        for claim in found.claims[detail.id] if detail.id not in found.replaced else ():
            if not claim.is_request:
                yield _Candidate(found.relevance.share(claim.text), detail.path or detail.id, detail, detail.id, claim)


def _stated(found: FoundEvidence, question: str) -> Iterator[_Candidate]:
    """Yield the sentences and titles of entries that contain the words of the question.

    The request counts too if the entry is a fix or names a cause, because it then answers the request.
    """
    for detail in (one for one in found.details if one.id not in found.replaced):
        path, observation, claims = detail.path or detail.id, detail.observation, found.claims[detail.id]
        decided, is_card = _is_decision(detail), observation.is_summary
        explains = observation.type in _EXPLAINED or any(names_cause(claim.text) for claim in claims)
        for claim in claims:
            answers = claim.text.startswith(_FINDINGS) if is_card else explains or not claim.is_request
            if answers and _has_words(claim.text, question, found.relevance, decided=decided):
                lead = None if claim.is_request else claim
                yield _Candidate(found.relevance.share(claim.text), path, detail, detail.id, lead)
        is_titled = detail.kind != HitKind.EXCHANGE and not is_card
        if is_titled and _has_words(observation.title, question, found.relevance, decided=decided):
            yield _Candidate(found.relevance.share(observation.title), path, detail, detail.id, None)


def _has_words(text: str, question: str, relevance: Relevance, *, decided: bool = False) -> bool:
    """Return whether a text contains the words of the question. One of several alternatives is enough."""
    groups = alternatives(question)
    missing = [group for group in groups if not any(relevance.contains(word, text) for word in group)]
    allowed = max(len(groups) // _LACKING, decided)
    least = _SHARE if len(groups) == len(key_words(question)) else _SHARE / 2  # It contains one alternative.
    return len(missing) <= allowed and relevance.share(text) >= least


def _asked(archive: MeteredArchive, found: FoundEvidence, question: str) -> Iterator[_Candidate]:
    """Yield the replies to prompts that ask the same question, in the best conversations."""
    store = archive.archive.store
    for path in list(dict.fromkeys(detail.path for detail in found.details if detail.path))[:_READ]:
        source = store.sources.by_archived(path)
        keys = store.summaries.conversation(source.session) if source and source.session is not None else ()
        for key, stored in store.exchanges.load(keys).items():
            prompt = stored.exchange.prompt
            asks = len(prompt) <= _PROMPT_MAX and _ASKS.search(prompt)
            if asks and _has_words(prompt, question, found.relevance) and (reply := _reply_of(stored.exchange)):
                public = ids.show("exchange", key)
                yield _Candidate(found.relevance.share(prompt), path, None, public, reply)


def _reply_of(exchange: Exchange) -> Claim | None:
    """Return the beginning of the last reply of an exchange, without announcements, or None if it states nothing."""
    replies = [turn for turn in exchange.active_turns if turn.is_reply]
    said = [text for text in sentences_of(replies[-1].text, whole=False) if is_statement(text)] if replies else []
    text = shorten(" ".join(said), _REPLY)
    return Claim(f"“{text}”", replies[-1].line, replies[-1].line) if text else None
