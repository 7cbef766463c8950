"""What a pass over the transcripts did, as JSON that callers may rely on. Keys are only ever added."""

from typing import TypedDict

from ..core.report import Exported, Report
from .quote import clean


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
    """What a pass did. Times are seconds from its start; `model` is why meaning cannot be searched, if it cannot.

    `skipped_homes` are Palaver homes and `skipped_links` directory links out of a searched folder, neither searched.
    `elsewhere` is whether another process observes and embeds at this moment, `reindexed` whether an index of another
    version of Palaver was made anew.
    """

    seen: int
    foreign: int
    excluded: int
    skipped_homes: list[str]
    skipped_links: list[str]
    still_archived: int
    changed: int
    lines: int
    exchanges: int
    reread: int
    outdated: int
    observed: int
    embedded: int
    elsewhere: bool
    reindexed: bool
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
        skipped_homes=sorted(clean(str(path)) for path in done.skipped.homes),
        skipped_links=sorted(clean(str(path)) for path in done.skipped.links),
        still_archived=done.still_archived,
        changed=done.changed,
        lines=done.lines,
        exchanges=done.exchanges,
        reread=done.reread,
        outdated=done.outdated,
        observed=report.observed,
        embedded=report.embedded,
        elsewhere=report.elsewhere,
        reindexed=report.reindexed,
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
        problems=[
            ProblemJson(path=clean(str(problem.path)), reason=problem.reason)
            for problem in (*exported.warnings, *exported.problems)
        ],
    )
