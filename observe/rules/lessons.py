"""Lessons: findings, rules and pitfalls that the assistant stated while working."""

from collections.abc import Sequence

from ...core.conversation import Exchange
from ...core.observation import Observation, ObservationType
from .concepts import concepts
from .exchange_analysis import ExchangeAnalysis
from .filler import is_filler, is_guess
from .salience import CAUSE, CHOICE, FINDING, RULE
from .selection import evidence, observed_at, select
from .statements import Statement
from .title_candidates import finding_candidate
from .title_context import without_folders
from .titles import score
from .touched_files import TouchedFiles

TELLING = 6
"""Minimum salience of a remark that is kept."""


def extract_remarks(analysis: ExchangeAnalysis) -> list[Statement]:
    """Return findings and rules.

    Guesses, remarks on the working tree, and sentences that need the previous sentence are omitted.
    """
    kept = [each for each in analysis.findings if FINDING.search(each.raw) or RULE.search(each.raw)]
    sure = [each for each in kept if not (is_guess(each) or is_filler(each))]
    return select(sure, count=5, characters=900, least=TELLING)


def extract_lesson(
    exchange: Exchange, analysis: ExchangeAnalysis, files: TouchedFiles, facts: Sequence[Statement], about: str
) -> Observation | None:
    """Return a lesson of at least two remarks made while working on `about`, or None."""
    if len(facts) < 2:
        return None
    best = max(facts, key=lambda fact: score(finding_candidate(fact), analysis))
    words = " ".join(fact.text for fact in facts)
    return Observation(
        type=_kind(best, analysis),
        title=without_folders(finding_candidate(best).text),
        subtitle=f"Found while working on: {about}" if about else "",
        narrative=best.text,
        facts=tuple(fact.text for fact in facts if fact is not best),
        concepts=concepts([fact.raw for fact in sorted(facts, key=lambda fact: fact is not best)], files.modified),
        files_read=files.named_in(words).read,
        files_modified=files.named_in(words).modified,
        evidence=evidence([*(fact for fact in facts if fact is not best), best]),
        at=observed_at(exchange),
    )


def _kind(best: Statement, analysis: ExchangeAnalysis) -> ObservationType:
    if RULE.search(best.raw) and not CAUSE.search(best.raw):
        return ObservationType.PATTERN
    if any(failure.line < best.line for failure in analysis.failures[:1]):
        return ObservationType.DEBUG
    if CHOICE.search(best.raw):
        return ObservationType.DECISION
    return ObservationType.LEARNING
