"""Health checks of the pipeline: the index, observations, stages and background work."""

from ...core.amount import many
from ...core.checkup import HealthProblem
from ...core.clock import show_minute
from ...search.index.generation import Generations
from ...search.index.index_check import UNINDEXED_MAX
from .archive_status import OUTDATED
from .consistency import REPAIR
from .health_context import ARCHIVE, Findings, HealthContext


def index(context: HealthContext) -> Findings:
    """Check that the index is usable and up to date."""
    status = context.status
    behind = f"{many(status.index_lag, 'change')} not indexed yet"
    lag = f", {behind} (still searched)" if status.index_lag and status.index_usable else ""
    yield "index", status.index + lag
    if status.index == OUTDATED:
        return  # This is normal after an upgrade. The next ingest run rebuilds the index.
    is_unbuilt = Generations(context.home.index).name() is None and context.store.publications.is_empty()
    if is_unbuilt and status.index_lag <= UNINDEXED_MAX:
        return  # Search reads so few changes from the archive.
    if status.index_lag and not status.index_usable:
        yield HealthProblem("index", status.index, "Run `palaver rebuild`.")
    elif status.index_lag > UNINDEXED_MAX:
        yield HealthProblem("index", behind, ARCHIVE)


def observations(context: HealthContext) -> Findings:
    """Check that all exchanges are observed. Embedding can be unfinished: search finds the entries by their words."""
    status = context.status
    facts = [f"{sum(status.observations.values()):,}"]
    if status.unobserved:
        facts.append(f"{many(status.unobserved, 'exchange')} not observed yet")
    if status.unembedded:
        continued = "" if status.watcher else " (`palaver archive` continues)"
        facts.append(f"{many(status.unembedded, 'entry', 'entries')} not embedded yet{continued}")
    yield "observations", "; ".join(facts)
    if status.unobserved and not status.watcher:
        yield HealthProblem("observations", f"{many(status.unobserved, 'exchange')} not observed yet", ARCHIVE)


def stages(context: HealthContext) -> Findings:
    """Check that the last run of every stage succeeded."""
    status = context.status
    times = [f"{stage.name} {show_minute(stage.succeeded)}" for stage in status.stages if stage.succeeded]
    yield "last success", ", ".join(times) if times else "none yet"
    for stage in status.stages:
        if stage.fails:
            problem = f"{stage.name} failed at {show_minute(stage.failed)}: {stage.problem}"
            yield HealthProblem("stages", problem, REPAIR if stage.name.startswith("verify") else ARCHIVE)


def background(context: HealthContext) -> Findings:
    """Report whether the background archiver is running."""
    watcher = context.status.watcher
    since = f"running since {show_minute(watcher.since)}" if watcher else ""
    yield "watcher", since or "not running (start it with `palaver install service`)"
