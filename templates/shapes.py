"""The JSON that callers may rely on. Keys are only ever added."""

from collections.abc import Sequence
from typing import TypedDict

import orjson

from ..core.clock import show_day, show_minute
from ..core.conversation import Exchange, Turn
from ..core.disclosure import Detail, Hit, Results, Transcript
from ..core.report import Exported, Report
from ..core.tokens import count
from .quote import clean


class HitJson(TypedDict):
    """One result of layer 1. `date` is YYYY-MM-DD; `tokens` is what layer 2 costs for it."""

    id: str
    kind: str
    type: str
    title: str
    summary: str
    snippet: str
    project: str
    date: str
    score: float
    similarity: float | None
    session_id: str
    path: str
    start_line: int
    end_line: int
    tokens: int


class ResultsJson(TypedDict):
    """Layer 1. `total` is the number of results, as on the page; `tokens` is what this object costs."""

    results: list[HitJson]
    total: int
    query: str | list[str]
    tokens: int
    index_lag: int
    searched: list[str]


class EvidenceJson(TypedDict):
    """Lines of the archived transcript, and a quote from them."""

    start_line: int
    end_line: int
    quote: str


class DetailJson(TypedDict):
    """One observation of layer 2. `date` is YYYY-MM-DD HH:MM in UTC; `tokens` is what layer 3 costs for its lines."""

    id: str
    kind: str
    type: str
    title: str
    subtitle: str
    narrative: str
    facts: list[str]
    concepts: list[str]
    files_read: list[str]
    files_modified: list[str]
    evidence: list[EvidenceJson]
    origin: str
    project: str
    branch: str
    date: str
    session_id: str
    session_title: str
    path: str
    start_line: int
    end_line: int
    tokens: int


class DetailsJson(TypedDict):
    """Layer 2."""

    observations: list[DetailJson]
    total: int
    tokens: int


class TurnJson(TypedDict):
    """One thing said or done in a conversation. `call` pairs a tool's result with its call."""

    line: int
    speaker: str
    kind: str
    text: str
    tool: str
    call: str
    failed: bool
    active: bool


class ExchangeJson(TypedDict):
    """One prompt and what followed it. `ordinal` counts from 1, as the markdown does."""

    ordinal: int
    start_line: int
    end_line: int
    date: str
    tokens_in: int
    tokens_out: int
    turns: list[TurnJson]


class TranscriptJson(TypedDict):
    """Layer 3. `next_line` is where to go on where the reply was cut."""

    path: str
    session_id: str
    kind: str
    parent_id: str
    agent: str
    version: str
    project: str
    directory: str
    branch: str
    title: str
    pull_request: str
    date: str
    start_line: int
    end_line: int
    total_lines: int
    next_line: int | None
    exchanges: list[ExchangeJson]
    tokens: int


class ProblemJson(TypedDict):
    """A file that could not be read, and why."""

    path: str
    reason: str


class OriginalJson(TypedDict):
    """A file that was given back, and the SHA-256 of its bytes."""

    archived: str
    path: str
    size: int
    sha256: str


class ExportedJson(TypedDict):
    """What was given back below a folder; `present` of the files were there already."""

    folder: str
    files: list[OriginalJson]
    present: int
    problems: list[ProblemJson]


class ReportJson(TypedDict):
    """What a pass did. Times are seconds from its start; `model` is why meaning cannot be searched, if it cannot."""

    seen: int
    foreign: int
    excluded: int
    still_archived: int
    changed: int
    lines: int
    exchanges: int
    reread: int
    outdated: int
    observed: int
    embedded: int
    sealed: int
    searchable: float
    complete: float
    model: str | None
    problems: list[ProblemJson]


def report_json(report: Report) -> ReportJson:
    """What a pass did as JSON."""
    done = report.ingested
    return ReportJson(
        seen=done.seen,
        foreign=done.foreign,
        excluded=done.excluded,
        still_archived=done.still_archived,
        changed=done.changed,
        lines=done.lines,
        exchanges=done.exchanges,
        reread=done.reread,
        outdated=done.outdated,
        observed=report.observed,
        embedded=report.embedded,
        sealed=report.sealing.sealed,
        searchable=round(report.searchable, 3),
        complete=round(report.complete, 3),
        model=str(report.model) if report.model else None,
        problems=[
            ProblemJson(path=clean(str(problem.path)), reason=problem.reason)
            for problem in (*done.problems, *report.sealing.problems)
        ],
    )


def exported_json(exported: Exported) -> ExportedJson:
    """What was given back as JSON."""
    return ExportedJson(
        folder=clean(str(exported.folder)),
        files=[
            OriginalJson(archived=file.archived, path=clean(str(file.path)), size=file.size, sha256=file.sha256)
            for file in exported.files
        ],
        present=exported.present,
        problems=[ProblemJson(path=clean(str(problem.path)), reason=problem.reason) for problem in exported.problems],
    )


def results_json(results: Results) -> ResultsJson:
    """Layer 1 as JSON."""
    concepts = [clean(concept) for concept in results.query.concepts]
    shape = ResultsJson(
        results=[_hit(hit) for hit in results.hits],
        total=results.total,
        query=concepts if len(concepts) > 1 else concepts[0],
        tokens=0,
        index_lag=results.index_lag,
        searched=list(results.searched),
    )
    shape["tokens"] = _cost(shape)
    return shape


def details_json(details: Sequence[Detail]) -> DetailsJson:
    """Layer 2 as JSON."""
    shape = DetailsJson(observations=[_detail(detail) for detail in details], total=len(details), tokens=0)
    shape["tokens"] = _cost(shape)
    return shape


def transcript_json(transcript: Transcript) -> TranscriptJson:
    """Layer 3 as JSON."""
    shape = TranscriptJson(
        path=clean(transcript.path),
        session_id=clean(transcript.session_id),
        kind=transcript.kind.value,
        parent_id=clean(transcript.parent_id),
        agent=transcript.agent,
        version=clean(transcript.version),
        project=clean(transcript.project),
        directory=clean(transcript.cwd),
        branch=clean(transcript.branch),
        title=clean(transcript.title),
        pull_request=clean(transcript.pull_request),
        date=show_day(transcript.started),
        start_line=transcript.start_line,
        end_line=transcript.end_line,
        total_lines=transcript.total_lines,
        next_line=transcript.next_line,
        exchanges=[_exchange(exchange) for exchange in transcript.exchanges],
        tokens=0,
    )
    shape["tokens"] = _cost(shape)
    return shape


def _hit(hit: Hit) -> HitJson:
    return HitJson(
        id=hit.id,
        kind=hit.kind,
        type=hit.type,
        title=clean(hit.title),
        summary=clean("; ".join(hit.facts) or hit.title),
        snippet=clean(hit.snippet),
        project=clean(hit.project),
        date=show_day(hit.at),
        score=round(hit.score, 4),
        similarity=None if hit.similarity is None else round(hit.similarity, 4),
        session_id=clean(hit.session_id),
        path=clean(hit.path),
        start_line=hit.start_line,
        end_line=hit.end_line,
        tokens=hit.tokens,
    )


def _detail(detail: Detail) -> DetailJson:
    it = detail.observation
    return DetailJson(
        id=detail.id,
        kind=detail.kind,
        type=it.type.value,
        title=clean(it.title),
        subtitle=clean(it.subtitle),
        narrative=clean(it.narrative),
        facts=_all(it.facts),
        concepts=_all(it.concepts),
        files_read=_all(it.files_read),
        files_modified=_all(it.files_modified),
        evidence=[
            EvidenceJson(start_line=e.start_line, end_line=e.end_line, quote=clean(e.quote)) for e in it.evidence
        ],
        origin=it.origin,
        project=clean(detail.project),
        branch=clean(detail.branch),
        date=show_minute(it.at),
        session_id=clean(detail.session_id),
        session_title=clean(detail.session_title),
        path=clean(detail.path),
        start_line=detail.start_line,
        end_line=detail.end_line,
        tokens=detail.tokens,
    )


def _exchange(exchange: Exchange) -> ExchangeJson:
    return ExchangeJson(
        ordinal=exchange.ordinal + 1,
        start_line=exchange.span.start_line,
        end_line=exchange.span.end_line,
        date=show_minute(exchange.started),
        tokens_in=exchange.tokens_in,
        tokens_out=exchange.tokens_out,
        turns=[_turn(turn) for turn in exchange.turns],
    )


def _turn(turn: Turn) -> TurnJson:
    return TurnJson(
        line=turn.line,
        speaker=turn.speaker.value,
        kind=turn.kind.value,
        text=clean(turn.text),
        tool=clean(turn.tool),
        call=clean(turn.call),
        failed=turn.failed,
        active=turn.active,
    )


def _all(texts: Sequence[str]) -> list[str]:
    return [clean(text) for text in texts]


def _cost(shape: object) -> int:
    return count(orjson.dumps(shape).decode())
