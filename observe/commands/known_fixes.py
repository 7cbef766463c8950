"""Known fixes of failed commands, and the costs of a command or a file in past sessions of a project.

A fix is a command or an edit that followed a failed command and removed the failure. A command that succeeds when it
is run again is no fix, because nothing shows what changed.

Costs are one line: a command that failed is shown with the command that worked, and a file with the check that failed
after most of its past edits. The agent typed all these commands, so their origin is `assistant`. Error messages come
from programs and are never shown.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store, StoredExchange, StoredObservation
from ...core import ids
from ...core.conversation import Exchange, Kind, Milliseconds, Origin, Session, Turn
from ...core.query import LIMIT_MAX, HitKind, Query, Role
from ...core.reports import KnownFix, Remedy
from ...core.results import Results
from ...search.search_index import SearchIndex
from ..rules.classification import file_name, relative_path
from ..rules.shell_commands import (
    ERROR_MAX,
    Segment,
    ShellRun,
    changes_state,
    command_segments,
    error_line,
    find_repairs,
    is_misplaced,
    is_misused,
    is_stopped,
    shell_runs,
    without_messages,
    without_roots,
)

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


_PASSAGES: Final = 5
"""Maximum number of entries to show for an error without a known fix."""
PAGES: Final = 4
"""Maximum number of pages of exchanges that are searched for an error."""
_SHARE_MIN: Final = 0.7
"""Minimum share of the words of an error that two adjacent lines of an output must contain to match."""
_ADJACENT_MIN: Final = 0.5
"""Minimum share of the adjacent word pairs of an error that are adjacent in these lines.

`fatal: not a git repository` has most of its words in `fatal: Unable to create '.git/index.lock'`, but no pair.
"""
_SHARE_BELOW: Final = 0.1
"""Maximum amount by which the share of matching words may be below the best share. Weaker matches are omitted."""
_SHORT: Final = 3
"""Maximum number of words of an error that must occur in this order, such as `test failed`."""
_ELSEWHERE: Final = 8
"""Number of commands after a command in the wrong folder that are searched for the right folder."""
_OTHER_FOLDER: Final = re.compile(r"\A(?:git|make) -C \S|--(?:prefix|manifest-path|directory|git-dir)[ =]\S")
"""Pattern for options that name another folder."""
_FILES_MAX: Final = 5
_CHANGES_MAX: Final = 3
_WORD: Final = re.compile(r"(?=\w*[^\W\d])\w{2,}")
"""Pattern for words and codes such as `TS2739`. Numbers do not match, because they vary between equal errors."""
_TOKEN: Final = re.compile(r"\w+")
_OPERATORS: Final = re.compile(r'["“”„*]')


def known_fixes(search: SearchIndex, store: Store, error: str, projects: Sequence[str] = ()) -> list[KnownFix]:
    """Return the fixes of failed commands whose output contains this error, most frequent first, then newest.

    If the error has several lines, only the line that states the failure is searched. An error of one word must match
    with its punctuation and numbers, because the word alone, as in `undefined:`, occurs in many other outputs. The
    words of an error of up to three words must be adjacent.

    Raises:
        InvalidInput: The error is too short, or a project is invalid.
    """
    error = error_line(error)
    words = _WORD.findall(error.lower())
    literal = _plain(error, len(words)) if len(set(words)) <= _SHORT else ""
    found: dict[tuple[object, ...], tuple[float, KnownFix, set[int]]] = {}
    for stored in _candidates(search, store, error, projects):
        session = store.sessions.load(stored.session)
        for share, fix in _fixes(stored, session, words, literal):
            key = (fix.project, fix.command, fix.remedy, fix.worked)
            known_share, newest, sessions = found.get(key, (0.0, fix, set[int]()))
            newest = fix if (fix.at or 0) > (newest.at or 0) else newest
            found[key] = max(share, known_share), newest, sessions | {stored.session}
    best = max((share for share, *_ in found.values()), default=0.0)
    kept = [
        replace(fix, sessions=len(each), exact=share == 1)
        for share, fix, each in found.values()
        if share > best - _SHARE_BELOW
    ]
    return sorted(kept, key=lambda fix: (fix.sessions, fix.at or 0), reverse=True)


def closest_passages(search: SearchIndex, error: str, projects: Sequence[str], limit: int) -> Results:
    """Return the entries that a search for an error without a known fix finds, at most `limit` and at most five."""
    limit = min(limit, _PASSAGES)
    results = search.find(Query.parse(_without_operators(error), limit=limit, projects=projects), snippets=False)
    return replace(results, cursor="")


def _candidates(search: SearchIndex, store: Store, error: str, projects: Sequence[str]) -> Iterator[StoredExchange]:
    """Yield the exchanges whose failed tool output is most similar to an error."""
    query = Query.parse(
        _without_operators(error), mode="text", limit=LIMIT_MAX, weak=True, projects=projects,
        kinds=[HitKind.EXCHANGE], roles=[Role.TOOL],
    )  # fmt: skip
    for _ in range(PAGES):
        results = search.find(query, snippets=False)
        keys = [key for hit in results.hits if (key := ids.key(hit.id, "exchange")) is not None]
        yield from store.exchanges.load(keys).values()
        if not results.cursor:
            return
        query = replace(query, cursor=results.cursor)


def _without_operators(error: str) -> str:
    """Return an error as a query, in which quotation marks and asterisks have no meaning."""
    return " ".join(_OPERATORS.sub(" ", error).split())


def _fixes(
    stored: StoredExchange, session: Session, words: Sequence[str], literal: str
) -> Iterator[tuple[float, KnownFix]]:
    """Yield the fixes in an exchange, each with the share of the words of the error that the failed output contains.

    If `literal` is not empty, the error line of each fix contains it.
    """
    exchange = stored.exchange
    turns = exchange.active_turns
    roots = tuple(filter(None, (session.cwd, exchange.cwd)))
    runs, repairs = list(shell_runs(turns)), {each.run.position: each for each in find_repairs(turns)}
    for place, run in enumerate(runs):
        share, line = _match(words, literal, run.result.text) if run.failed else (0.0, "")
        if share < _SHARE_MIN or is_stopped(run) or all(segment.is_reader for segment in run.segments):
            continue
        fix = KnownFix(
            ids.show("exchange", stored.key), session.project, exchange.ended or exchange.started,
            without_roots(run.command, roots), line, Remedy.EDIT, start_line=run.line,
        )  # fmt: skip
        if repair := repairs.get(run.position):
            remedy = Remedy.BEFORE if repair.before else Remedy.INSTEAD
            worked, end = _in_folder(repair.folder, repair.worked.text), repair.later.result.line
            yield share, replace(fix, remedy=remedy, worked=without_roots(worked, roots), end_line=end)
        elif (repaired := _repaired(fix, run, runs[place + 1 :], turns, roots)) is not None:
            yield share, repaired


def _match(words: Sequence[str], literal: str, output: str) -> tuple[float, str]:
    """Return the largest share of the words that two adjacent lines contain, and the line with more of these words.

    The share is 0 if too few words that are adjacent in the error are adjacent in these lines.
    """
    distinct, pairs = set(words), set(pairwise(words))
    lines = [line.strip() for line in output.splitlines() if line.strip() and literal in _plain(line, len(distinct))]
    rows = [_WORD.findall(line.lower()) for line in lines]
    shares = [0.0]
    for one, two in pairwise([*rows, list[str]()]):
        adjacent = len(pairs.intersection(pairwise([*one, *two]))) >= _ADJACENT_MIN * len(pairs)
        shares.append(len(distinct.intersection([*one, *two])) / len(distinct) if adjacent else 0.0)
    if not max(shares):
        return 0.0, ""
    place = shares.index(max(shares)) - 1
    better = max(range(place, min(place + 2, len(lines))), key=lambda number: len(distinct.intersection(rows[number])))
    return max(shares), lines[better][:ERROR_MAX]


def _plain(line: str, words: int) -> str:
    """Return a line in the form that is compared with an error of `words` words.

    The form is in lower case. It has no punctuation, except for an error of one word.
    """
    if words == 1:
        return " ".join(line.lower().split())
    return f" {' '.join(_TOKEN.findall(line.lower()))} "


def _repaired(
    fix: KnownFix, run: ShellRun, later: Sequence[ShellRun], turns: Sequence[Turn], roots: Sequence[str]
) -> KnownFix | None:
    """Return the fix with what was changed before the failed command succeeded, or None if nothing was changed."""
    misplaced = is_misplaced(fix.error)
    if misplaced and (moved := _elsewhere(run, later)):
        worked = without_roots(_in_folder(moved.folder, moved.command), roots)
        return replace(fix, remedy=Remedy.INSTEAD, worked=worked, end_line=moved.result.line)
    if is_misused(fix.error) and not misplaced:
        return None
    passed = _passed(run, later, turns)
    if passed is None:
        return None
    fix = replace(fix, end_line=passed.result.line)
    if not misplaced and (files := _edited(turns, run.position, passed.position, roots)):
        return replace(fix, files=files)
    if helped := " && ".join(_changes(later[: later.index(passed)])):
        return replace(fix, remedy=Remedy.BEFORE, worked=without_roots(helped, roots))
    if passed.folder not in ("", run.folder):
        worked = _in_folder(passed.folder, passed.command)
        return replace(fix, remedy=Remedy.INSTEAD, worked=without_roots(worked, roots))
    return None


def _elsewhere(run: ShellRun, later: Sequence[ShellRun]) -> ShellRun | None:
    """Return the next run of the same program that succeeded in another folder, or None."""
    programs = {segment.program for segment in run.segments if not segment.is_reader}
    for other in later[:_ELSEWHERE]:
        named = other.folder not in ("", run.folder) or _OTHER_FOLDER.search(other.command)
        if named and not other.failed and programs.intersection(segment.program for segment in other.segments):
            return other
    return None


def _in_folder(folder: str, command: str) -> str:
    return f"cd {folder} && {command}" if folder else command


def _passed(run: ShellRun, later: Sequence[ShellRun], turns: Sequence[Turn]) -> ShellRun | None:
    """Return the next run that shows that a failure is fixed, or None.

    If files were edited after the failure, another command for the same task counts too. For example, a run of all
    tests shows that a single test passes.
    """
    last = run.segments[-1]
    for other in later:
        if other.proves(last.text) or (not other.failed and other.command == run.command):
            return other
        passed = [segment for segment in other.segments if other.proves(segment.text) and segment.base == last.base]
        if last.task and passed and _edited(turns, run.position, other.position, ()):
            return other
    return None


def _changes(between: Sequence[ShellRun]) -> list[str]:
    """Return the successful commands that changed something.

    The result is empty if there are too many commands to name a cause.
    """
    found = [run.command for run in between if not run.failed and changes_state(run)]
    return found if len(found) <= _CHANGES_MAX and sum(map(len, found)) <= ERROR_MAX else []


def _edited(turns: Sequence[Turn], start: int, end: int, roots: Sequence[str]) -> tuple[str, ...]:
    """Return the files that were edited between two turns, relative to the project."""
    paths = [path for turn in turns[start:end] if turn.kind is Kind.RESULT for path in turn.writes]
    return tuple(dict.fromkeys(relative_path(path, roots) for path in paths))[:_FILES_MAX]
