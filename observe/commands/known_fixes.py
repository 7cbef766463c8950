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
from math import isclose
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store, StoredExchange, StoredObservation
from ...core import ids
from ...core.conversation import Exchange, Kind, Milliseconds, Origin, Session, Turn
from ...core.query import LIMIT_MAX, HitKind, Query, Role
from ...core.reports import KnownFix, Remedy
from ...core.results import Results
from ...search.query.relevance import Relevance, key_words
from ...search.query.tokenizer import terms
from ...search.search_index import SearchIndex
from ..rules.classification import file_name, relative_path
from ..rules.salience import QUESTION_WORDS
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
    skips_check,
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
_SHARE_MIN: Final = 0.6
"""Minimum share of the words of an error that a command and two adjacent lines of its output must contain.

Rare words weigh more. See bench/RESULTS.md, "Known fixes".
"""
_OUTPUT_MIN: Final = 0.4
"""Minimum share that these lines must contain without the command. A question that quotes a command has its words."""
_SHARE_BELOW: Final = 0.1
"""Maximum amount by which a share may be below that of the most similar failure, whether this was repaired or not."""
_SHORT: Final = 3
"""Maximum number of words of an error whose order matters, such as `test failed`."""
_ELSEWHERE: Final = 8
"""Number of commands after a command in the wrong folder that are searched for the right folder."""
_OTHER_FOLDER: Final = re.compile(r"\A(?:git|make) -C \S|--(?:prefix|manifest-path|directory|git-dir)[ =]\S")
"""Pattern for options that name another folder."""
_FILES_MAX: Final = 5
_CHANGES_MAX: Final = 3
_WORD: Final = re.compile(r"(?=\w*[^\W\d])\w{2,}")
"""Pattern for words and codes such as `TS2739`. Numbers do not match, because they vary between equal errors."""
_ID: Final = re.compile(r"(?=[a-f]*\d)[0-9a-f]{7,40}")
"""Pattern for the ID of a commit or a similar hash, which varies between equal errors."""
_TOKEN: Final = re.compile(r"\w+")
_OPERATORS: Final = re.compile(r'["“”„*]')
_FOLDERS: Final = re.compile(r"(?<![\w.@/-])(?:[A-Za-z]:[\\/]|~?/)(?:[\w.@+-]+[\\/])*")
"""Pattern for the folders of an absolute path. They differ between equal errors."""
_QUESTION: Final = re.compile(rf"\A\W*(?:{QUESTION_WORDS})\b|\?\s*\Z", re.IGNORECASE)
_REPAIR: Final = re.compile(r"(?:fix|mend|repair|solv|resolv|help|work)(?:e?s|ed|ing|e)?", re.IGNORECASE)
"""Pattern for words of a question that ask for a repair, rather than describe the error."""


class _Failure(Struct, frozen=True):
    """Failed command of an exchange.

    Attributes:
        runs: All commands of the exchange. The failed one has the index `place`.
        named: Terms of the command and the project.
        output: Lines of the output, each with its terms.
    """

    stored: StoredExchange
    session: Session
    runs: tuple[ShellRun, ...]
    place: int
    named: frozenset[str]
    output: tuple[tuple[str, frozenset[str]], ...]

    @property
    def run(self) -> ShellRun:
        """The failed command."""
        return self.runs[self.place]

    def contains(self, literal: str, words: int) -> bool:
        """Return whether a line contains an error of this number of words literally."""
        return any(literal in _plain(line, words) for line, _ in self.output)

    def match(self, relevance: Relevance) -> "_Match":
        """Return the two adjacent lines that are most similar to an error, together with the command."""
        pairs = pairwise([*self.output, ("", frozenset[str]())])
        matches = [(one, two, relevance.share_of(one[1] | two[1])) for one, two in pairs]
        shares = [relevance.share_of(self.named | one[1] | two[1]) * (own >= _OUTPUT_MIN) for one, two, own in matches]
        share = max(shares)
        one, two, own = matches[shares.index(share)]
        line, _ = max(one, two, key=lambda row: relevance.share_of(row[1]))
        return _Match(self, share, line[:ERROR_MAX], isclose(own, 1))


class _Match(NamedTuple):
    """Share of the words of an error in a failure, the most similar line, and whether the lines have all words."""

    failure: _Failure
    share: float
    line: str
    is_exact: bool


def known_fixes(search: SearchIndex, store: Store, error: str, projects: Sequence[str] = ()) -> list[KnownFix]:
    """Return the fixes of failed commands whose output contains this error, exact matches first, then frequent ones.

    `error` is the message, or a question that describes it, such as "what fixed the missing Cart type?". If it has
    several lines, only the line that states the failure is searched. If a failure without a known fix is clearly more
    similar than those with one, the result is empty.

    Raises:
        InvalidInput: The error is too short, or a project is invalid.
    """
    error = _FOLDERS.sub("", error_line(error))
    words = _words(error)
    text, number = " ".join(word for word in words if not _ID.fullmatch(word)), len(set(words))
    failures = _failures(search, store, text or error, projects) if text else []
    if number <= _SHORT and not _QUESTION.search(error):
        literally = [failure for failure in failures if failure.contains(_plain(error, number), number)]
        failures = literally or (failures if number > 1 else [])
    relevance = Relevance(text, [failure.run.result.text for failure in failures], every_word=True)
    matches = [failure.match(relevance) for failure in failures]
    least = max([_SHARE_MIN, *(match.share - _SHARE_BELOW for match in matches)])
    hashes = [word for word in words if _ID.fullmatch(word)]
    return _counted([match for match in matches if match.share >= least], hashes)


def _counted(matches: Sequence[_Match], hashes: Sequence[str]) -> list[KnownFix]:
    """Return each fix once, with the number of its sessions. Exact matches come first, then the most frequent ones.

    A match is exact only if its line contains the IDs of commits in the error.
    """
    fixes: dict[tuple[object, ...], tuple[KnownFix, set[int]]] = {}
    for match in matches:
        if (found := _fix(match.failure)) is None:
            continue
        exact = match.is_exact and all(name in match.line for name in hashes)
        fix = replace(found, error=match.line, exact=exact)
        key = (fix.project, fix.command, fix.remedy, fix.worked, fix.files)
        newest, sessions = fixes.get(key, (fix, set[int]()))
        newest = max(fix, newest, key=lambda one: (one.exact, one.at or 0))
        fixes[key] = newest, sessions | {match.failure.stored.session}
    counted = [replace(fix, sessions=len(sessions)) for fix, sessions in fixes.values()]
    return sorted(counted, key=lambda fix: (fix.exact, fix.sessions, fix.at or 0), reverse=True)


def closest_passages(search: SearchIndex, error: str, projects: Sequence[str], limit: int) -> Results:
    """Return the entries that a search for an error without a known fix finds, at most `limit` and at most five."""
    limit = min(limit, _PASSAGES)
    results = search.find(Query.parse(_without_operators(error), limit=limit, projects=projects), snippets=False)
    return replace(results, cursor="")


def _words(error: str) -> list[str]:
    """Return the words of an error, or those of a question that describe it."""
    if _QUESTION.search(error):
        return [word for word in key_words(error) if _WORD.search(word) and not _REPAIR.fullmatch(word)]
    return _WORD.findall(error)


def _failures(search: SearchIndex, store: Store, text: str, projects: Sequence[str]) -> list[_Failure]:
    """Return the failed commands of the exchanges whose failed tool output is most similar to a text."""
    query = Query.parse(
        _without_operators(text), mode="text", limit=LIMIT_MAX, weak=True, projects=projects,
        kinds=[HitKind.EXCHANGE], roles=[Role.TOOL],
    )  # fmt: skip
    hits = search.find(query, snippets=False).hits
    exchanges = store.exchanges.load([key for hit in hits if (key := ids.key(hit.id, "exchange")) is not None])
    return [
        failure
        for stored in exchanges.values()
        for failure in _failures_of(stored, store.sessions.load(stored.session))
    ]


def _without_operators(error: str) -> str:
    """Return an error as a query, in which quotation marks and asterisks have no meaning."""
    return " ".join(_OPERATORS.sub(" ", error).split())


def _failures_of(stored: StoredExchange, session: Session) -> Iterator[_Failure]:
    """Yield the failed commands of an exchange, except those that only read or that were stopped."""
    runs = tuple(shell_runs(stored.exchange.active_turns))
    for place, run in enumerate(runs):
        if run.failed and not is_stopped(run) and not all(segment.is_reader for segment in run.segments):
            lines = [line.strip() for line in run.result.text.splitlines() if line.strip()] or [""]
            output = tuple((line, frozenset(terms(line))) for line in lines)
            yield _Failure(stored, session, runs, place, frozenset(terms(f"{run.command}\n{session.project}")), output)


def _fix(failure: _Failure) -> KnownFix | None:
    """Return the fix of a failed command, or None if it was not repaired."""
    exchange, run = failure.stored.exchange, failure.run
    turns = exchange.active_turns
    roots = tuple(filter(None, (failure.session.cwd, exchange.cwd)))
    fix = KnownFix(
        ids.show("exchange", failure.stored.key), failure.session.project, exchange.ended or exchange.started,
        without_roots(run.command, roots), error_line(run.result.text), Remedy.EDIT, start_line=run.line,
    )  # fmt: skip
    repair = next((repair for repair in find_repairs(turns) if repair.run.position == run.position), None)
    if repair is None:
        return _repaired(fix, run, failure.runs[failure.place + 1 :], turns, roots)
    remedy = Remedy.BEFORE if repair.before else Remedy.INSTEAD
    worked = _in_folder(repair.folder, repair.worked.text, roots)
    return replace(fix, remedy=remedy, worked=worked, end_line=repair.later.result.line)


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
    if moved := _elsewhere(fix.error, run, later):
        worked = _in_folder(moved.folder, moved.command, roots)
        return replace(fix, remedy=Remedy.INSTEAD, worked=worked, end_line=moved.result.line)
    if not misplaced and (varied := _varied(fix.error, run, later, turns)):
        worked = _in_folder(varied.folder, varied.command, roots)
        return replace(fix, remedy=Remedy.INSTEAD, worked=worked, end_line=varied.result.line)
    if is_misused(fix.error) and not misplaced:
        return None
    passed = _passed(run, later, turns)
    if passed is None:
        return None
    fix = replace(fix, end_line=passed.result.line)
    if not misplaced and (files := _edited(turns, run, passed.position, roots)):
        return replace(fix, files=files)
    if helped := " && ".join(_changes(later[: later.index(passed)])):
        return replace(fix, remedy=Remedy.BEFORE, worked=without_roots(helped, roots))
    if passed.folder not in ("", run.folder):
        return replace(fix, remedy=Remedy.INSTEAD, worked=_in_folder(passed.folder, passed.command, roots))
    return None


def _elsewhere(error: str, run: ShellRun, later: Sequence[ShellRun]) -> ShellRun | None:
    """Return the next run in another folder that shows that the folder was wrong, or None.

    After an error about the folder, any command of the same program that succeeds counts. After another usage error,
    the same command without this error counts.
    """
    programs = {segment.program for segment in run.segments if not segment.is_reader}
    for other in later[:_ELSEWHERE]:
        if other.folder in ("", run.folder) and not _OTHER_FOLDER.search(other.command):
            continue
        same = programs.intersection(segment.program for segment in other.segments)
        if is_misplaced(error) and same and not other.failed:
            return other
        if is_misused(error) and other.command == run.command and error not in other.result.text:
            return other
    return None


def _varied(error: str, run: ShellRun, later: Sequence[ShellRun], turns: Sequence[Turn]) -> ShellRun | None:
    """Return the next run of the same commands with other arguments if it succeeded, or None.

    At least half of the words are the same, and no file was edited before it. A check that passes with other arguments,
    such as another test, does not count.
    """
    first = set(run.command.split())
    for other in later[:_ELSEWHERE]:
        if not _is_variant(run, other):
            continue
        second = set(other.command.split())
        is_similar = 2 * len(first & second) >= max(len(first), len(second)) and not skips_check(other.command)
        is_fixed = not other.failed and error not in other.result.text and not _edited(turns, run, other.position, ())
        return other if is_similar and is_fixed else None
    return None


def _is_variant(run: ShellRun, other: ShellRun) -> bool:
    """Return whether two command lines run the same commands with other arguments."""
    pairs = list(zip(run.segments, other.segments, strict=False))
    same = all(one.text == two.text or (one.words[:2] == two.words[:2] and not one.task) for one, two in pairs)
    return same and run.command != other.command and len(run.segments) == len(other.segments)


def _in_folder(folder: str, command: str, roots: Sequence[str]) -> str:
    """Return a command with the folder to change to, relative to the project unless this is the project itself."""
    relative = without_roots(folder, roots)
    command = without_roots(command, roots)
    return f"cd {folder if relative == '.' else relative} && {command}" if folder else command


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
        if last.task and passed and _edited(turns, run, other.position, ()):
            return other
    return None


def _changes(between: Sequence[ShellRun]) -> list[str]:
    """Return the successful commands that changed something.

    The result is empty if there are too many commands to name a cause.
    """
    found = [run.command for run in between if not run.failed and changes_state(run)]
    return found if len(found) <= _CHANGES_MAX and sum(map(len, found)) <= ERROR_MAX else []


def _edited(turns: Sequence[Turn], run: ShellRun, end: int, roots: Sequence[str]) -> tuple[str, ...]:
    """Return the files that were edited between a run and a turn, those that its output names first.

    Their paths are relative to the project.
    """
    paths = [path for turn in turns[run.position : end] if turn.kind is Kind.RESULT for path in turn.writes]
    paths.sort(key=lambda path: file_name(path) not in run.result.text)
    return tuple(dict.fromkeys(relative_path(path, roots) for path in paths))[:_FILES_MAX]
