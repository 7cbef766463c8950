"""Verdict of an exchange that changed nothing: an answer, the cause of a problem, or the findings of a review."""

import re
from collections.abc import Sequence

from ...core.conversation import Exchange
from ...core.observation import Observation, ObservationType
from ...core.sentences import TITLE_MAX, shorten
from .classification import TypeSignals, classify
from .concepts import concepts
from .exchange_analysis import ExchangeAnalysis
from .filler import is_filler, is_guess
from .outcome import asked, remarks_of, subtitle
from .phrase_patterns import QUESTION_WORDS
from .salience import CAUSE, RULE, is_status
from .selection import evidence, narrative, observed_at, select
from .statements import Statement
from .title_candidates import is_aside
from .titles import REVIEW, answer_title, best_answer
from .touched_files import TouchedFiles
from .user_request import is_specific

_ASKS = re.compile(
    rf"(?:{QUESTION_WORDS}|is|are|was|were|do|does|did|has|have|can|could|should|would)\b", re.IGNORECASE
)
_FACTS = 6
_FILE = re.compile(r"[\w-]+\.[a-zA-Z]{1,5}\b(?!\()")
_PULL_REQUEST = re.compile(r"/pull/(\d+)|\bPR\s?#?(\d+)")


def extract_verdict(exchange: Exchange, analysis: ExchangeAnalysis, files: TouchedFiles) -> Observation | None:
    """Return what an investigation found that the user asked for, or None.

    Without a question that names its subject, and an answer to it, there is no verdict.
    """
    request = analysis.request
    if not request.human or request.routine or not is_specific(request.title):
        return None
    if REVIEW.match(request.title):
        return _review(exchange, analysis, files)
    if not (request.looks or request.title.endswith("?") or _ASKS.match(request.title)):
        return None
    answer = best_answer(analysis)
    if answer is None or not (title := answer_title(answer, analysis)):
        return None
    best = next((each for each in analysis.conclusion if each.raw == answer.raw), None)
    others = [each for each in (*analysis.conclusion, *remarks_of(analysis)) if each != best and not is_guess(each)]
    facts = select((each for each in others if not (is_filler(each) or is_aside(each))), count=_FACTS, least=3)
    return _observation(exchange, analysis, files, title, [*([best] if best else []), *facts])


def _review(exchange: Exchange, analysis: ExchangeAnalysis, files: TouchedFiles) -> Observation | None:
    """Return the findings of a review that name a file and its defect, under the verdict of the review."""
    findings = [each for each in analysis.conclusion if _is_finding(each)]
    answer = best_answer(analysis)
    if not findings or answer is None:
        return None
    number = _PULL_REQUEST.search(analysis.request.whole)
    about = f" of PR #{number[1] or number[2]}" if number else ""
    title = shorten(f"Review{about}: {answer.text}", TITLE_MAX)
    kept = select(findings, count=_FACTS)
    return _observation(exchange, analysis, files, title, kept) if title and kept else None


def _is_finding(statement: Statement) -> bool:
    named = _FILE.search(statement.raw) is not None or _FILE.search(statement.topic) is not None
    return named and not (is_filler(statement) or is_aside(statement) or is_status(statement.text))


def _observation(
    exchange: Exchange, analysis: ExchangeAnalysis, files: TouchedFiles, title: str, facts: Sequence[Statement]
) -> Observation:
    words = " ".join(fact.text for fact in facts)
    request = analysis.request
    quoted = Statement(request.text, request.quote, request.text, request.line, exchange.turns[0].speaker)
    return Observation(
        type=_kind(analysis, facts),
        title=title,
        subtitle=subtitle(analysis, facts, title),
        narrative=narrative([asked(analysis), *(fact.text for fact in facts[:1])]),
        facts=tuple(fact.text for fact in facts),
        concepts=concepts([title, request.text, *(fact.raw for fact in facts)], ()),
        files_read=files.named_in(words).read,
        evidence=evidence([*facts, *([quoted] if request.quote else [])]),
        at=observed_at(exchange),
    )


def _kind(analysis: ExchangeAnalysis, facts: Sequence[Statement]) -> ObservationType:
    """Return the type: a rule, a diagnosis of a problem, or else something learned."""
    if facts and RULE.search(facts[0].raw) and not CAUSE.search(facts[0].raw):
        return ObservationType.PATTERN
    request, conclusion = f"{analysis.request.title} {analysis.request.whole}", " ".join(fact.raw for fact in facts)
    kind = classify(TypeSignals([], request, conclusion, writes=(), changed=False))
    return kind if kind is ObservationType.DEBUG else ObservationType.LEARNING
