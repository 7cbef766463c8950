"""Known costs: what a command or a file already cost in past sessions of a project, in one line.

A command that failed is shown with the command that worked. Both were typed by the agent, so their author is the
assistant. The error comes from a program and is never shown. A file is shown with its last bug fix, if sessions had to
repair bugs in it several times.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ...archiver.store import Store, StoredObservation
from ...core import ids
from ...core.conversation import Milliseconds, Session
from ...core.observation import ObservationType
from ...core.origin import Origin, Trust
from ..rules.command_repairs import without_roots
from ..rules.shell_commands import command_segments
from ..rules.touched_files import relative_path

SIMILARITY_MIN: Final = 0.75
"""Minimum share of words that a command has in common with a failed command. See bench/RESULTS.md, "Injection"."""
FIXES_MIN: Final = 3
"""Minimum number of sessions that repaired a bug in a file. See bench/RESULTS.md, "Injection"."""
_SESSIONS: Final = 200
"""Number of latest sessions of a project that are considered."""
_FAILED: Final = "Failed: "
_WORKED, _BEFORE = "Worked: ", "Repaired by: "
_REPAIRS: Final = (ObservationType.BUG_FIX, ObservationType.DEBUG)


class KnownCost(Struct, frozen=True):
    """Line about a command or a file, with the observation that it comes from.

    Attributes:
        strength: Similarity of the commands, or number of sessions that repaired the file.
        remedy: Command that worked. Empty for a file.
    """

    id: str
    at: Milliseconds | None
    text: str
    strength: float
    remedy: str = ""


class _Repair(Struct, frozen=True):
    """Failed command, and the command that repaired it or worked instead."""

    stored: StoredObservation
    failed: str
    worked: str
    before: bool


def latest_sessions(store: Store, namespace: str) -> list[int]:
    """Return the latest main sessions of the project with this namespace, newest first."""
    places = {
        (project, cwd)
        for project, cwd in store.sessions.projects()
        if store.projects.contains(namespace, Session("", "", project=project, cwd=cwd))
    }
    return list(store.sessions.latest(places, _SESSIONS))


def command_cost(store: Store, sessions: Sequence[int], command: str, root: str) -> KnownCost | None:
    """Return the most similar command that failed in these sessions, with the command that worked, or None.

    Nothing is returned if the command already contains the one that worked. `root` is the folder of the project.
    """
    _, segments = command_segments(without_roots(command.strip(), (root,)))
    texts = {segment.text for segment in segments}
    repairs = [each for each in _repairs(store, sessions) if each.worked not in texts] if texts else []
    ranked = [(max(_similarity(text, each.failed) for text in texts), each) for each in repairs]
    strength, best = max(ranked, key=lambda each: each[0], default=(0.0, None))
    if best is None:
        return None
    times = len({each.stored.session for each in repairs if (each.failed, each.worked) == (best.failed, best.worked)})
    count = f" in {times} sessions" if times > 1 else " before"
    remedy = f"running `{best.worked}` first repaired it" if best.before else f"`{best.worked}` worked"
    text = f"`{best.failed}` failed{count}; {remedy}"
    observation = best.stored
    return KnownCost(_id(observation), observation.observation.at, text, strength, best.worked)


def file_cost(store: Store, sessions: Sequence[int], path: str, root: str) -> KnownCost | None:
    """Return the last bug fix in a file and the number of sessions that repaired bugs in it, or None."""
    file = relative_path(path, (root,))
    found = store.observations.modifying(sessions, file, _REPAIRS)
    trusted = [each for each in found if Origin(each.observation.origin).trust > Trust.LOW]
    times = len({each.session for each in trusted})
    if not trusted:
        return None
    newest = trusted[0]
    count = f"{times} sessions" if times > 1 else "1 session"
    text = f"{count} fixed bugs in {file}; the last: {newest.observation.title}"
    return KnownCost(_id(newest), newest.observation.at, text, times)


def _repairs(store: Store, sessions: Sequence[int]) -> list[_Repair]:
    """Return the repairs of commands, newest first. Repairs in sessions that read text from outside are omitted."""
    repairs: list[_Repair] = []
    for stored in store.observations.with_fact(sessions, _FAILED):
        facts = stored.observation.facts
        failed = next(fact for fact in facts if fact.startswith(_FAILED)).removeprefix(_FAILED)
        worked = next((fact for fact in facts if fact.startswith((_WORKED, _BEFORE))), "")
        if worked and stored.observation.origin not in {Origin.EXTERNAL, Origin.IMPORTED}:
            command = worked.removeprefix(_WORKED).removeprefix(_BEFORE)
            repairs.append(_Repair(stored, failed, command, worked.startswith(_BEFORE)))
    return repairs


def _similarity(one: str, other: str) -> float:
    """Return the share of words that two commands have in common."""
    first, second = set(one.split()), set(other.split())
    return len(first & second) / len(first | second)


def _id(stored: StoredObservation) -> str:
    return ids.show("observation", stored.key)
