"""What came up on the way? Findings, rules and pitfalls that the assistant stated while it worked."""

from collections.abc import Sequence

from ...core.conversation import Exchange
from ...core.observation import Observation, ObservationType
from .concepts import concepts
from .draft import chosen, evidence, when
from .files import Files
from .phrases import opening
from .statements import Statement
from .story import Story
from .wording import headline
from .worth import CAUSE, CHOICE, FINDING, HOUSEKEEPING, RULE, leans, worth

TELLING = 6
"""The worth from which a remark made in passing is more than a running commentary."""

_HEDGED = opening(
    r"""
    if so | so | however | i (?:see|think|wonder|suspect|notice) | hmm | maybe | perhaps | but | and | or | wait
    | actually | interesting | two | since | typescript error | looks like | .*\b(?:might|may|could|probably
    |presumably|likely) (?:be|have|need)
    """
)


def remarks(told: Story) -> list[Statement]:
    """What was found on the way and holds beyond the moment, without guesses and housekeeping."""
    kept = [said for said in told.findings if FINDING.search(said.raw) or RULE.search(said.raw)]
    sure = [said for said in kept if not (leans(said.raw) or _HEDGED.match(said.raw) or HOUSEKEEPING.search(said.raw))]
    return chosen(sure, count=5, characters=900, least=TELLING)


def lesson(
    exchange: Exchange, told: Story, touched: Files, facts: Sequence[Statement], about: str
) -> Observation | None:
    """Several remarks make a lesson of their own, found while working on `about`; a single one makes none."""
    if len(facts) < 2:
        return None
    best = max(facts, key=lambda fact: worth(fact.raw))
    words = " ".join(fact.text for fact in facts)
    return Observation(
        type=_kind(best, told),
        title=headline(best.text),
        subtitle=f"Found while working on: {about}" if about else "",
        narrative=best.text,
        facts=tuple(fact.text for fact in facts if fact is not best),
        concepts=concepts([fact.raw for fact in sorted(facts, key=lambda fact: fact is not best)], touched.modified),
        files_read=touched.named_in(words).read,
        files_modified=touched.named_in(words).modified,
        evidence=evidence([*(fact for fact in facts if fact is not best), best]),
        at=when(exchange),
    )


def _kind(best: Statement, told: Story) -> ObservationType:
    if RULE.search(best.raw) and not CAUSE.search(best.raw):
        return ObservationType.PATTERN
    if any(failure.line < best.line for failure in told.failures[:1]):
        return ObservationType.DEBUG
    if CHOICE.search(best.raw):
        return ObservationType.DECISION
    return ObservationType.LEARNING
