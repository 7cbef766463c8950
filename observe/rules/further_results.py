"""Further results of an exchange: sections of the answer with a result that the title of the outcome does not state."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from ...core.conversation import Exchange
from ...core.observation import Observation, ObservationType
from ...core.sentences import truncate
from .answer_headings import is_beside
from .concepts import concepts
from .exchange_analysis import ExchangeAnalysis
from .filler import is_filler
from .salience import CAUSE, CHANGED, RULE, salience
from .selection import evidence, observed_at, select
from .statements import Statement
from .title_candidates import TitleCandidate, bottom_line, is_aside, section_candidates
from .title_context import section_in_context
from .titles import score
from .touched_files import TouchedFiles

PART_OF = "Part of: "
"""Prefix of the subtitle of a further result, before the title of the outcome."""
_RULES = "rules-"
"""Prefix of the extractor's name. A language model can choose any subtitle."""
RESULTS_MAX = 4
"""Maximum number of further results of an exchange."""
_SECTION_SALIENCE, _OUTCOME_SALIENCE = 8, 4
"""Minimum salience of a section that is a further result, and of the first section, which belongs to the outcome."""
_CLEAR = 0.8
"""Minimum score of the title of a section. Of 120 sections of the train split, most below it state no result."""


class Section(Struct, frozen=True):
    """Section of an answer with its best line as the title."""

    title: TitleCandidate
    best: Statement
    statements: tuple[Statement, ...]


def further_results(analysis: ExchangeAnalysis, title: TitleCandidate | None) -> list[Section]:
    """Return up to `RESULTS_MAX` sections of the conclusion that state a result, in order.

    The section of the outcome is omitted: the one that contains its title, or else the first salient section.
    """
    sections = [tuple(group) for _, group in groupby(analysis.conclusion, key=lambda each: (each.line, each.section))]
    outcome = next((place for place, each in enumerate(sections) if title and _contains(each, title)), None)
    if outcome is None:
        outcome = next((place for place, each in enumerate(sections) if _weight(each) >= _OUTCOME_SALIENCE), 0)
    found = [
        section
        for place, each in enumerate(sections)
        if place != outcome and (section := _section(each, analysis)) is not None
    ]
    best = sorted(found, key=lambda each: -score(each.title, analysis))[:RESULTS_MAX]
    return [each for each in found if each in best]


def is_further_result(observation: Observation) -> bool:
    """Return whether an observation is a further result of its exchange."""
    return observation.subtitle.startswith(PART_OF) and observation.extractor.startswith(_RULES)


def _contains(statements: Sequence[Statement], title: TitleCandidate) -> bool:
    return any(title.raw in (each.raw, each.heading, each.topic) for each in statements)


def _weight(statements: Sequence[Statement]) -> int:
    return sum(max(0, salience(each.raw)) for each in statements)


def _section(statements: Sequence[Statement], analysis: ExchangeAnalysis) -> Section | None:
    """Return a section with a heading whose best line is a clear title, or None."""
    topic = statements[0].topic
    if not topic or is_beside(topic):
        return None
    telling = [each for each in statements if salience(each.raw) > 0 and not (is_filler(each) or is_aside(each))]
    if _weight(telling) < _SECTION_SALIENCE:
        return None
    title, best = max(section_candidates(telling), key=lambda pair: score(pair[0], analysis))
    if score(title, analysis) < _CLEAR or is_beside(title.text):
        return None
    return Section(title, best, tuple(statements))


def observe_results(
    sections: Sequence[Section],
    exchange: Exchange,
    analysis: ExchangeAnalysis,
    files: TouchedFiles,
    outcome: Observation,
    session_title: str,
) -> Iterator[Observation]:
    """Yield an observation for each section."""
    for section in sections:
        facts = select(each for each in section.statements if each != section.best and not is_filler(each))
        words = " ".join(each.text for each in section.statements)
        named = files.named_in(words)
        yield Observation(
            type=_kind(section.best, outcome, changes=bool(named.modified)),
            title=section_in_context(section.title, section.statements, analysis, session_title),
            subtitle=truncate(f"{PART_OF}{outcome.title}", 160),
            narrative=section.best.text,
            facts=tuple(fact.text for fact in facts),
            concepts=concepts([section.best.raw, *(fact.raw for fact in facts)], named.modified),
            files_read=named.read,
            files_modified=named.modified,
            evidence=evidence([*facts, section.best]),
            at=observed_at(exchange),
        )


def _kind(best: Statement, outcome: Observation, *, changes: bool) -> ObservationType:
    """Return the type of the outcome for a section about changes, or else the type of its best line."""
    if changes or CHANGED.match(bottom_line(best.text)):
        return outcome.type
    if RULE.search(best.raw) and not CAUSE.search(best.raw):
        return ObservationType.PATTERN
    fixes = outcome.type in {ObservationType.BUG_FIX, ObservationType.DEBUG}
    return ObservationType.DEBUG if fixes and CAUSE.search(best.raw) else ObservationType.LEARNING
