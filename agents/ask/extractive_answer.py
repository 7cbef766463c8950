"""Answers without a language model, composed of sentences from the archive."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...core.cited_answer import AnswerReceipt, CitedAnswer, CitedSession, CitedSource, Finding, FindingKind
from ...core.observation import ObservationType
from ...core.query import Query

if TYPE_CHECKING:
    from ...core.query import Filters
    from ...core.results import Detail
    from ...search.archive_search import ArchiveSearch

_OPENED = 5
_KINDS = {
    ObservationType.DECISION: FindingKind.DECISION,
    ObservationType.BUG_FIX: FindingKind.FIX,
    ObservationType.DEBUG: FindingKind.FIX,
    ObservationType.PATTERN: FindingKind.PATTERN,
    ObservationType.LEARNING: FindingKind.GOTCHA,
}


def extractive_answer(archive: "ArchiveSearch", question: str, filters: "Filters", here: str = "") -> CitedAnswer:
    """Return the answer to a question. `here` is the current project, whose entries rank higher."""
    query = replace(Query.parse(question), filters=filters, here=here)
    results = archive.find(query)
    hits = [hit for hit in results.hits if hit.kind != "document"][:_OPENED]
    if not hits:
        return CitedAnswer(question, suggestions=("Try other words.",), receipt=AnswerReceipt(searches=1))
    details = archive.details([hit.id for hit in hits])
    labels = {hit.path: hit.short_session_id for hit in hits}
    findings = tuple(_finding(detail, labels) for detail in details)
    return CitedAnswer(
        question,
        best=findings[0].text,
        findings=findings,
        sources=tuple(source for finding in findings for source in finding.sources),
        sessions=tuple(_sessions(details, labels)),
        receipt=AnswerReceipt(searches=1, details=len(details)),
    )


def _finding(detail: "Detail", labels: dict[str, str]) -> Finding:
    source = CitedSource(
        detail.id, detail.session_id, labels[detail.path], detail.path, detail.start_line, detail.end_line
    )
    kind = _KINDS.get(detail.observation.type, FindingKind.OTHER)
    return Finding(kind, detail.observation.title, (source,), detail.observation.at)


def _sessions(details: Iterable["Detail"], labels: dict[str, str]) -> Iterable[CitedSession]:
    for detail in {detail.path: detail for detail in details if detail.path}.values():
        yield CitedSession(
            labels[detail.path],
            detail.session_id,
            detail.session_title,
            detail.project,
            detail.path,
            detail.observation.at,
        )
