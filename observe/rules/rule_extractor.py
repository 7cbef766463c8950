"""Extraction of the observations of one exchange by rules."""

from collections.abc import Iterator

from msgspec.structs import replace

from ...core.conversation import Exchange, Session
from ...core.observation import Observation
from .. import rules
from .agent_notes import extract_notes
from .command_repairs import extract_repairs
from .decisions import extract_decisions
from .exchange_analysis import analyze_exchange
from .outcome import extract_outcome
from .touched_files import touched_files
from .trimming import trim_to_budget
from .verdict import extract_verdict
from .verification import VerifiedObservations, verify


def observe(exchange: Exchange, session: Session) -> VerifiedObservations:
    """Extract the observations of one exchange, most important first, with verified evidence.

    In each observation, `evidence[i]` proves `facts[i]`. Evidence after the last fact proves the narrative.
    """
    extracted = (trim_to_budget(replace(each, extractor=rules.VERSION)) for each in _extract(exchange, session))
    return verify(exchange, extracted)


def _extract(exchange: Exchange, session: Session) -> Iterator[Observation]:
    analysis = analyze_exchange(exchange)
    files = touched_files(exchange, session)
    result = extract_outcome(exchange, analysis, files) or extract_verdict(exchange, analysis, files)
    if result is not None:
        yield result
    yield from extract_decisions(exchange, analysis)
    yield from extract_repairs(exchange, session)
    yield from extract_notes(exchange, files)
