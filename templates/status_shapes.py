"""How the archive is, as the JSON that we promise to keep."""

from typing import TypedDict

from ..core.report import Status
from .pass_shapes import ProblemJson
from .quote import clean


class UnaccountedJson(TypedDict):
    """A copy whose lines do not add up."""

    path: str
    lines: int
    accounted: int


class WatcherJson(TypedDict):
    """The background archiver that runs now. `since` is milliseconds in UTC."""

    who: str
    since: int


class StageJson(TypedDict):
    """When a part of the work last succeeded and last failed, in milliseconds in UTC, and its last problem."""

    name: str
    succeeded: int | None
    failed: int | None
    problem: str


class StatusJson(TypedDict):
    """How the archive is. Always `lines == parsed + repeated + sum(skipped.values())`."""

    home: str
    files: int
    bytes: int
    lines: int
    parsed: int
    repeated: int
    skipped: dict[str, int]
    pending_bytes: int
    sessions: int
    exchanges: int
    unobserved: int
    observations: dict[str, int]
    refused: int
    unembedded: int
    index: str
    index_lag: int
    unaccounted: list[UnaccountedJson]
    problems: list[ProblemJson]
    watcher: WatcherJson | None
    stages: list[StageJson]
    compared: int
    compared_since: int | None
    damaged: list[ProblemJson]
    given_up: int


def status_json(status: Status) -> StatusJson:
    """The state of the archive as JSON."""
    return StatusJson(
        home=str(status.home),
        files=status.files,
        bytes=status.size,
        lines=status.lines,
        parsed=status.parsed,
        repeated=status.repeated,
        skipped=status.skipped,
        pending_bytes=status.pending_bytes,
        sessions=status.sessions,
        exchanges=status.exchanges,
        unobserved=status.unobserved,
        observations=status.observations,
        refused=status.refused,
        unembedded=status.unembedded,
        index=status.index,
        index_lag=status.index_lag,
        unaccounted=[
            UnaccountedJson(path=clean(name), lines=lines, accounted=told) for name, lines, told in status.unaccounted
        ],
        problems=[ProblemJson(path=clean(str(path)), reason=reason) for path, reason in status.problems],
        watcher=WatcherJson(who=status.watcher.who, since=status.watcher.since) if status.watcher else None,
        stages=[
            StageJson(name=each.name, succeeded=each.succeeded, failed=each.failed, problem=clean(each.problem))
            for each in status.stages
        ],
        compared=status.compared,
        compared_since=status.compared_since,
        damaged=[ProblemJson(path=clean(name), reason=clean(fault)) for name, fault in status.damaged],
        given_up=status.given_up,
    )
