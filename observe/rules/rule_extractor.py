"""Extraction of the observations of one exchange by rules."""

from msgspec.structs import replace

from ...core.conversation import Exchange, Session
from .. import rules
from .command_repairs import extract_repairs
from .decisions import extract_decisions
from .exchange_analysis import analyze_exchange
from .lessons import extract_lesson, extract_remarks
from .outcome import extract_outcome
from .touched_files import touched_files
from .trimming import trim_to_budget
from .verification import VerifiedObservations, verify


def observe(exchange: Exchange, session: Session) -> VerifiedObservations:
    """Extract the observations of one exchange, most important first, with verified evidence.

    In each observation, `evidence[i]` proves `facts[i]`. Evidence after the last fact proves the narrative.
    """
    analysis = analyze_exchange(exchange)
    changed_files = touched_files(exchange, session)
    findings = extract_remarks(analysis)
    lessons, remarks = (findings, []) if len(findings) > 1 else ([], findings)
    rest = replace(analysis, findings=tuple(each for each in analysis.findings if each not in lessons))
    outcomes = extract_outcome(exchange, rest, changed_files, remarks, session.title)
    main = outcomes[0] if outcomes else None
    about = main.title if main and analysis.request.routine else analysis.request.title
    side_lesson = extract_lesson(exchange, analysis, changed_files, lessons, about)
    learned = [*outcomes, side_lesson] if side_lesson else outcomes
    every = (*learned, *extract_decisions(exchange, analysis), *extract_repairs(exchange, session))
    return verify(exchange, (trim_to_budget(replace(observation, extractor=rules.VERSION)) for observation in every))
