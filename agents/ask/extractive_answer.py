"""Answers without a language model, composed of sentences from the archive."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ...core.cited_answer import CitedAnswer, CitedSession, Finding
from ...core.clock import show_day
from ...core.observation import ObservationType
from ...core.origin import Origin
from ...core.query import Filters
from ...core.results import Detail, TimeExpression
from .evidence_search import FoundEvidence, find_evidence
from .finding_conflicts import with_conflicts
from .finding_text import BEST, OTHER, finding_of
from .metered_archive import MeteredArchive
from .quotation import quoted_claim
from .relevance import repeats

if TYPE_CHECKING:
    from ...search.archive_search import ArchiveSearch
    from ...templates.render import Renderer

ANSWER_TOKENS: Final = 2_000
"""Maximum tokens of an answer."""
_WEAK: Final = 0.2
"""Minimum score of the best hit. Below it, the answer is marked as weak."""
_WEAK_SHARE: Final = 0.25
"""Minimum share of the question's words in the best finding. Below it, the answer is marked as weak.

The share was chosen on half of the 519 questions about 98 sessions. On the other half, 69 % of the wrong best findings
are marked, and 22 % of the correct ones. With the score alone, these were 31 % and 7 %.
"""
_SAME: Final = 0.9
"""Minimum share of a finding's words in an earlier finding. From this share on, the finding is a repetition."""
_NEAREST: Final = 3
"""Maximum number of entries of other times that are shown if nothing is from the time in the question."""
_DECIDED: Final = 0.3
"""Minimum relevance of a decision, as a share of the best entry's relevance, at which the decision comes first."""


def extractive_answer(
    archive: "ArchiveSearch",
    renderer: "Renderer",
    question: str,
    filters: Filters | None = None,
    here: str = "",
    budget: int = ANSWER_TOKENS,
) -> CitedAnswer:
    """Return an answer of at most `budget` tokens, as the renderer prints it.

    Args:
        archive: The archive to search.
        renderer: The renderer, which counts the tokens of the answer and of the entries read for it.
        question: The question.
        filters: Only entries that satisfy these filters are used.
        here: The current project, whose entries rank higher.
        budget: Maximum tokens of the answer.

    Raises:
        InvalidInput: The question or a filter is invalid.
    """
    metered = MeteredArchive(archive, renderer)
    found = find_evidence(metered, question, filters or Filters(), here)
    if not found.details:
        return renderer.with_answer_tokens(_nothing_found(question, found, metered))
    findings = with_conflicts(list(_findings(metered, found)), found.details)
    weak = not found.newest and (
        found.results.hits[0].score < _WEAK or found.relevance.share(findings[0].text) < _WEAK_SHARE
    )
    basis = CitedAnswer(question, weak=weak, newest=found.newest, notices=tuple(_notices(question, found, weak=weak)))
    return _fitting(lambda number: _answer(basis, findings[:number], found, metered), findings, renderer, budget)


def _notices(question: str, found: FoundEvidence, *, weak: bool) -> Iterator[str]:
    """Yield notes about words of the question that the archive, or a weak answer, does not contain."""
    if found.absent:
        yield f"Not in the archive: {', '.join(found.absent)}."
    others = [word for word in found.relevance.unknown(question) if word not in found.absent]
    if weak and others:
        yield f"The cited entries do not contain: {', '.join(others)}."
    if weak and found.has_user_filters:
        yield "For more entries, ask again without the filters."


def _nothing_found(question: str, found: FoundEvidence, metered: MeteredArchive) -> CitedAnswer:
    results = found.results
    why = results.explanation
    nearest = why.weak if why else results.hits[:_NEAREST]
    absent = found.absent or (why.missing if why else ())
    facts = [f"Not in the archive: {', '.join(absent)}."] if absent else []
    facts += [f"Only entries from {_days(each)} were searched, for `{each.text}`." for each in results.times]
    newest = f" The newest entry is from {show_day(results.newest)}." if results.newest is not None else ""
    facts += [f"Nothing is from {_days(each)} (`{each.text}`).{newest}" for each in results.empty_times]
    if why and why.similar:
        facts.append(f"Similar terms: {', '.join(dict.fromkeys(each.nearest for each in why.similar))}.")
    advice = "Ask in other words, or name a file, a command or an error message."
    if found.has_user_filters:
        advice = "Ask again without the filters, or in other words."
    return CitedAnswer(question, nearest=nearest, suggestions=(*facts, advice), receipt=metered.receipt())


def _days(expression: TimeExpression) -> str:
    """Return the first and last day of a date range."""
    first, last = show_day(expression.after), show_day(expression.before - 1)
    return first if first == last else f"{first} to {last}"


def _findings(archive: MeteredArchive, found: FoundEvidence) -> Iterator[Finding]:
    """Yield a finding for each entry, best first. Findings that repeat earlier ones are left out."""
    known: list[str] = []
    for place, detail in enumerate(_with_decision_first(found)):
        given = found.claims[detail.id]
        if not (place or found.newest) and (quote := quoted_claim(archive, detail, given, found.relevance)):
            given = [quote, *given]
        finding = finding_of(detail, given, found.relevance, found.labels, OTHER if place else BEST)
        if detail.replaced_by or not repeats(finding.text, known, _SAME):
            known.append(finding.text)
            yield finding


def _with_decision_first(found: FoundEvidence) -> list[Detail]:
    """Move a relevant decision of the user before the best entry, if both are from the same conversation."""

    def share(detail: Detail) -> float:
        texts = [detail.observation.title, *(claim.text for claim in found.claims[detail.id])]
        return found.relevance.share(" ".join(texts))

    first, *others = found.details
    if first.path and not _is_decision(first):
        for detail in others:
            if detail.path == first.path and _is_decision(detail) and share(detail) >= _DECIDED * share(first):
                return [detail, *(each for each in found.details if each is not detail)]
    return [first, *others]


def _is_decision(detail: Detail) -> bool:
    return detail.observation.type is ObservationType.DECISION and detail.observation.origin == Origin.HUMAN


def _answer(
    basis: CitedAnswer, findings: Sequence[Finding], found: FoundEvidence, metered: MeteredArchive
) -> CitedAnswer:
    """Add the findings, their sources and the receipt to an answer."""
    sources = tuple(source for finding in findings for source in finding.sources)
    paths = dict.fromkeys(source.path for source in sources if source.path)
    by_path = {detail.path: detail for detail in reversed(found.details)}
    sessions = tuple(_session(by_path[path], found.labels[path]) for path in paths)
    receipt = metered.receipt(list(paths))
    return replace(basis, findings=tuple(findings), sources=sources, sessions=sessions, receipt=receipt)


def _session(detail: Detail, label: str) -> CitedSession:
    at = detail.observation.at
    return CitedSession(label, detail.session_id, detail.session_title, detail.project, detail.path, at)


def _fitting(
    answer: Callable[[int], CitedAnswer], findings: Sequence[Finding], renderer: "Renderer", budget: int
) -> CitedAnswer:
    """Return the answer with as many of the first findings as the budget allows, and with its cost in the receipt."""
    number = len(findings)
    found = renderer.with_answer_tokens(answer(number))
    while found.receipt.tokens > budget and number > 1:
        number -= 1
        found = renderer.with_answer_tokens(answer(number))
    return found
