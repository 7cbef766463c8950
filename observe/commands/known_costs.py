"""Known costs: what a command or a file already cost in past sessions of a project, in one line.

A command that failed is shown with the command that worked. A file is shown with the check that failed after most of
its past edits. The agent typed all these commands, so their origin is `assistant`. Error messages come from programs
and are never shown.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ...archiver.store import Store, StoredObservation
from ...core import ids
from ...core.conversation import Exchange, Milliseconds, Session
from ...core.origin import Origin
from ..rules.command_repairs import is_stopped, without_roots
from ..rules.shell_commands import Segment, command_segments, shell_runs, without_messages
from ..rules.touched_files import file_name, relative_path

SIMILARITY_MIN: Final = 0.75
"""Minimum share of words that a command has in common with a failed command. See bench/RESULTS.md, "Injection"."""
FAILED_SHARE_MIN: Final = 0.5
"""Minimum share of the past edits of a file after which a check failed. See bench/RESULTS.md, "Injection"."""
_FAILED_EDITS_MIN: Final = 2
"""Minimum number of edits of a file after which a check failed."""
_EDITS: Final = 10
"""Number of latest exchanges that edited a file and are considered."""
_EDITS_READ: Final = 200
_CHECKS: Final = frozenset(("test", "lint", "type check", "check", "build"))
_SESSIONS: Final = 200
"""Number of latest sessions of a project that are considered."""
_FAILED: Final = "Failed: "
_WORKED, _BEFORE = "Worked: ", "Repaired by: "


class KnownCost(Struct, frozen=True):
    """Line about a past failure of a command, or of checks after edits of a file.

    Attributes:
        id: ID of the observation of the command, or of the newest exchange that edited the file.
        strength: Similarity of the commands, or share of the edits after which a check failed.
        remedy: Command that worked. Empty for a file.
    """

    id: str
    at: Milliseconds | None
    text: str
    strength: float
    remedy: str = ""


class _Repair(Struct, frozen=True):
    """Failed command, and the command that worked: before it if `before` is True, or else instead of it."""

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

    A failure of `git push` also applies to `git push origin`. Nothing is returned if the command already contains the
    command that worked. `root` is the folder of the project.
    """
    _, segments = command_segments(without_roots(without_messages(command), (root,)))
    texts = {segment.text for segment in segments}
    repairs = [each for each in _repairs(store, sessions) if each.worked not in texts] if texts else []
    ranked = [(max(_strength(segment, each) for segment in segments), each) for each in repairs]
    strength, best = max(ranked, key=lambda each: each[0], default=(0.0, None))
    if best is None:
        return None
    same = [each.stored.key for each in repairs if (each.failed, each.worked) == (best.failed, best.worked)]
    times = len(same) + sum(map(len, store.confirmations.of_observations(same).values()))
    count = f" {times} times" if times > 1 else " before"
    remedy = f"running `{best.worked}` first repaired it" if best.before else f"`{best.worked}` worked"
    text = f"`{best.failed}` failed{count}; {remedy}"
    observation = best.stored
    return KnownCost(_id(observation), observation.observation.at, text, strength, best.worked)


def file_cost(store: Store, sessions: Sequence[int], path: str, root: str) -> KnownCost | None:
    """Return the check that failed after most of the latest edits of a file in these sessions, or None.

    The result is None if a check failed after fewer than two of these edits.
    """
    file = relative_path(path, (root,))
    edits = store.edits.of_names([file_name(path)], _EDITS_READ, sessions)
    keys = [each.exchange for each in edits if relative_path(each.path, (each.cwd,)) == file]
    exchanges = store.exchanges.load(keys[:_EDITS])
    failed = {key: check for key in exchanges if (check := _failed_check(exchanges[key].exchange, file))}
    if len(failed) < _FAILED_EDITS_MIN:
        return None
    [(check, times)] = Counter(failed.values()).most_common(1)
    newest = next(key for key in keys if failed.get(key) == check)
    at = exchanges[newest].exchange.ended or exchanges[newest].exchange.started
    text = f"`{check}` failed after {times} of the last {len(exchanges)} edits of {file}"
    return KnownCost(ids.show("exchange", newest), at, text, len(failed) / len(exchanges))


def _failed_check(exchange: Exchange, file: str) -> str:
    """Return the first check that failed after an edit of the file, or an empty text."""
    turns, roots = exchange.active_turns, (exchange.cwd,)
    edited = (
        place for place, turn in enumerate(turns) if any(relative_path(path, roots) == file for path in turn.writes)
    )
    first = next(edited, len(turns))
    for run in shell_runs(turns[first:]):
        check = next((segment for segment in run.segments if segment.task in _CHECKS), None)
        if check is not None and run.failed and not is_stopped(run):
            return check.base
    return ""


def _repairs(store: Store, sessions: Sequence[int]) -> list[_Repair]:
    """Return the failed commands of these sessions, each with the command that worked, newest first.

    Observations with the origin `external` or `imported` are omitted, because they are not trusted.
    """
    repairs: list[_Repair] = []
    for stored in store.observations.with_fact(sessions, _FAILED):
        facts = stored.observation.facts
        failed = next(fact for fact in facts if fact.startswith(_FAILED)).removeprefix(_FAILED)
        worked = next((fact for fact in facts if fact.startswith((_WORKED, _BEFORE))), "")
        if worked and stored.observation.origin not in {Origin.EXTERNAL, Origin.IMPORTED}:
            command = worked.removeprefix(_WORKED).removeprefix(_BEFORE)
            repairs.append(_Repair(stored, failed, command, worked.startswith(_BEFORE)))
    return repairs


def _strength(segment: Segment, repair: _Repair) -> float:
    """Return the similarity of a command and the failed command, 0 to 1.

    The result is 1 if the command is the failed command with further arguments, unless they make it more similar to the
    command that worked.
    """
    similarity = _similarity(segment.text, repair.failed)
    is_failed = segment.extends(repair.failed) and similarity > _similarity(segment.text, repair.worked)
    return 1.0 if is_failed else similarity


def _similarity(one: str, other: str) -> float:
    """Return the share of words that two commands have in common."""
    first, second = set(one.split()), set(other.split())
    return len(first & second) / len(first | second)


def _id(stored: StoredObservation) -> str:
    return ids.show("observation", stored.key)
