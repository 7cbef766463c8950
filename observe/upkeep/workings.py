"""Workings: whether something is made of what was said: the index, what is learned, the stages, the background."""

from typing import Final

from ...core.amount import many
from ...core.checkup import Finding
from ...core.clock import show_minute
from .patient import ARCHIVE, Answer, Fact, Patient
from .status import OUTDATED

_BEHIND: Final = 5_000
"""Changes that the index may be behind: each process that searches reads them anew when it starts."""
_DEAD: Final = "See them with `palaver observe --dead-letters`, and try again with `--revive`."


def index(patient: Patient) -> Answer:
    status = patient.status
    if status is None:
        return
    unused = "searched" in status.index
    behind = f", {many(status.index_lag, 'change')} behind (searched all the same)" if status.index_lag else ""
    yield Fact("index", status.index if unused else status.index + behind)
    if status.index == OUTDATED:
        return  # an upgrade is no fault, and the next pass makes it anew
    if status.index_lag and unused:
        yield Finding("index", f"it is {status.index}", "Run `palaver rebuild`.")
    elif status.index_lag > _BEHIND:
        yield Finding("index", f"it is {many(status.index_lag, 'change')} behind", ARCHIVE)


def learning(patient: Patient) -> Answer:
    status = patient.status
    if status is None:
        return
    late = [(status.unobserved, "exchange"), (status.unembedded, "vector")]
    left = " and ".join(many(count, noun) for count, noun in late if count)
    one = sum(count for count, _ in late) == 1
    waiting = f"{left} {'waits' if one else 'wait'}"
    learned = many(sum(status.observations.values()), "observation")
    yield Fact("learned", f"{learned}; {waiting}" if left else learned)
    if left and not status.watcher:
        yield Finding("learned", f"{waiting} for the next pass", ARCHIVE)


def stages(patient: Patient) -> Answer:
    status = patient.status
    if status is None:
        return
    told = [f"{stage.name} {show_minute(stage.succeeded)}" for stage in status.stages if stage.succeeded]
    yield Fact("last success", f"{', '.join(told)} UTC" if told else "none yet")
    for stage in status.stages:
        if stage.fails:
            problem = f"{stage.name} failed at {show_minute(stage.failed)} UTC: {stage.problem}"
            yield Finding("stages", problem, ARCHIVE)


def background(patient: Patient) -> Answer:
    if patient.status is None:
        return
    watcher = patient.status.watcher
    running = f"runs since {show_minute(watcher.since)} UTC" if watcher else "does not run; `palaver setup service`"
    yield Fact("watcher", running)


def dead(patient: Patient) -> Answer:
    dead = len(patient.store.jobs.dead()) if patient.store else 0
    if dead:
        yield Finding(
            "language", f"{many(dead, 'request')} to a language model {'was' if dead == 1 else 'were'} given up", _DEAD
        )
