"""Extraction of observations by rules. It needs no API key or network access, and its results are reproducible.

An exchange yields at most four kinds of observations: one outcome (request, actions, conclusion), one lesson (findings
made while working), the user's own decisions, and failed commands with the commands that worked. An exchange that
neither changes nor explains anything yields no observations.
"""

from msgspec.structs import replace

from ...core.conversation import Exchange, Session
from .command_repairs import extract_repairs
from .decisions import extract_decisions
from .exchange_analysis import analyze_exchange
from .lessons import extract_lesson, extract_remarks
from .outcome import extract_outcome
from .touched_files import touched_files
from .trimming import trim_to_budget
from .verification import VerifiedObservations, verify

VERSION = "rules-13"
"""Version of the rules. Increase it when the result for the same exchange changes."""


def observe(exchange: Exchange, session: Session) -> VerifiedObservations:
    """Extract the observations of one exchange, most important first, with verified evidence.

    In each observation, `evidence[i]` proves `facts[i]`. Evidence after the last fact proves the narrative.
    """
    analysis = analyze_exchange(exchange)
    changed_files = touched_files(exchange, session)
    findings = extract_remarks(analysis)
    lessons, remarks = (findings, []) if len(findings) > 1 else ([], findings)
    rest = replace(analysis, findings=tuple(each for each in analysis.findings if each not in lessons))
    main = extract_outcome(exchange, rest, changed_files, remarks, session.title)
    about = main.title if main and analysis.request.routine else analysis.request.title
    side_lesson = extract_lesson(exchange, analysis, changed_files, lessons, about)
    learned = [observation for observation in (main, side_lesson) if observation is not None]
    every = (*learned, *extract_decisions(exchange, analysis), *extract_repairs(exchange, session))
    return verify(exchange, (trim_to_budget(replace(observation, extractor=VERSION)) for observation in every))
