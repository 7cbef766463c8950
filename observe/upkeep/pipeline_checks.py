"""Health checks of the pipeline: the index, observations, stages and background work."""

from typing import Final

from ...core.amount import many
from ...core.checkup import HealthProblem
from ...core.clock import show_minute
from .archive_status import OUTDATED
from .health_context import ARCHIVE, Findings, HealthContext

_BEHIND: Final = 5_000
"""Maximum number of unindexed changes. Each search process reads them again when it starts."""


def index(context: HealthContext) -> Findings:
    """Check that the index is usable and up to date."""
    status = context.status
    behind = f"{many(status.index_lag, 'change')} not indexed yet"
    lag = f", {behind} (still searched)" if status.index_lag and status.index_usable else ""
    yield "index", status.index + lag
    if status.index == OUTDATED:
        return  # This is normal after an upgrade. The next ingest run rebuilds the index.
    if status.index_lag and not status.index_usable:
        yield HealthProblem("index", status.index, "Run `palaver rebuild`.")
    elif status.index_lag > _BEHIND:
        yield HealthProblem("index", behind, ARCHIVE)


def observations(context: HealthContext) -> Findings:
    """Check that all exchanges are observed and all entries are embedded."""
    status = context.status
    left = [f"{many(status.unobserved, 'exchange')} not observed yet"] * bool(status.unobserved)
    left += [f"{many(status.unembedded, 'entry', 'entries')} not embedded yet"] * bool(status.unembedded)
    yield "observations", "; ".join([f"{sum(status.observations.values()):,}", *left])
    if left and not status.watcher:
        yield HealthProblem("observations", " and ".join(left), ARCHIVE)


def stages(context: HealthContext) -> Findings:
    """Check that the last run of every stage succeeded."""
    status = context.status
    times = [f"{stage.name} {show_minute(stage.succeeded)}" for stage in status.stages if stage.succeeded]
    yield "last success", f"{', '.join(times)} UTC" if times else "none yet"
    for stage in status.stages:
        if stage.fails:
            problem = f"{stage.name} failed at {show_minute(stage.failed)} UTC: {stage.problem}"
            yield HealthProblem("stages", problem, ARCHIVE)


def background(context: HealthContext) -> Findings:
    """Report whether the background archiver is running."""
    watcher = context.status.watcher
    since = f"running since {show_minute(watcher.since)} UTC" if watcher else ""
    yield "watcher", since or "not running (start it with `palaver install service`)"
