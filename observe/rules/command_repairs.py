"""Failed commands and their repairs. A repair is a corrected command, or a command that had to run first.

Precision has priority over recall. An edit after which a failed check passes does not count as a repair. The correction
of a mistyped path does not count either.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from ...core.conversation import Exchange, Kind, Session, Turn
from ...core.observation import Evidence, Observation, ObservationType
from .concepts import concepts
from .phrase_patterns import phrases
from .selection import observed_at
from .shell_commands import Segment, ShellRun, shell_runs
from .touched_files import relative_path

REPAIRS_MAX: Final = 3
"""Maximum number of observations of repairs in one exchange."""
_WINDOW: Final = 8
"""Number of commands after a failed command that are searched for its repair."""
_COMMAND_MAX: Final = 140
"""Maximum characters of a command that is worth remembering. Longer commands are scripts."""
ERROR_MAX: Final = 160
"""Maximum characters of a line of output."""
_TITLE_MAX: Final = 120
"""Maximum characters of a title. An error that does not fit is truncated."""
_ERROR_MIN: Final = 10
"""Minimum characters of an error in a title. Shorter errors say too little."""
_CODE_MAX: Final = 45
"""Maximum characters of a command in a title."""

_MISUSED: Final = re.compile(
    r"""command\ not\ found|:\ not\ found$|is\ not\ recognized\ as
    |un(?:recogni[sz]ed|known|expected|supported)\ (?:sub)?(?:command|arguments?|option|flag|switch|task|script)
    |(?:illegal|invalid|no\ such)\ (?:sub)?(?:option|command|argument|flag)\b
    |(?:received|got)\ unexpected\ arguments|if\ any\ flags\ in\ the\ group|mutually\ exclusive
    |not\ allowed\ with\ argument
    |script\ not\ found|missing\ script|no\ rule\ to\ make\ target|(?:no|unknown)\ (?:task|recipe|target)\b
    |cannot\ find\ main\ module|does\ not\ contain\ main\ module|go\.mod\ file\ not\ found
    |could\ not\ find\ `?Cargo\.toml|(?:no|could\ not\ read|couldn't\ find\ a)\ package\.json|not\ a\ git\ repository
    |python[\d.]*:\ no\ module\ named|externally-managed-environment|has\ no\ upstream
    |zsh:.{0,6}\ no\ matches\ found""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for usage errors, such as `command not found`. A failed test or a linter finding does not match."""
_MISPLACED: Final = re.compile(
    r"""not\ a\ git\ repository|no\ makefile\ found|cannot\ find\ main\ module|does\ not\ contain\ main\ module
    |go\.mod\ file\ not\ found|could\ not\ find\ `?Cargo\.toml
    |(?:no|could\ not\ read|couldn't\ find\ a)\ package\.json""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for usage errors that report the wrong folder."""
_STOPPED: Final = re.compile(
    r"Sibling tool call errored|This command requires approval|The user doesn't want|\[Request interrupted"
    r"|exec_command failed|Command (?:aborted|timed out)"
)
"""Pattern for the results of commands that the agent or the user stopped."""
_ERROR: Final = re.compile(
    r"(?!hint:).*(?:\b(?:errors?|fatal|failed|failure|rejected|issues? found|cannot|could not|not found|denied)\b"
    r"|ERR!)",
    re.IGNORECASE,
)
_STATUS: Final = re.compile(r"(?:Exit code|Command (?:exited|failed) with)\b.*")
_FIXER: Final = re.compile(r"(?:^|[:\s])(?:fix|--fix|--write|--apply|-w|format|fmt)(?=\s|$)")
_FILE_CHANGE: Final = re.compile(r"(?:rm|mv|cp|mkdir|touch|kill|pkill)\s")
_SHOWING: Final = re.compile(r"git (?:status|log|diff|show|add|branch|rev-parse|ls-)|gh \w+ (?:view|list|status)")
_GENERAL: Final = frozenset(("git", "gh", "docker", "curl", "jq", "tar", "ssh", "rsync"))
"""General-purpose programs. Knowledge of their options is not specific to a project."""
_CHECKS: Final = frozenset(("test", "lint", "type check", "check"))
_BYPASS: Final = re.compile(r"--(?:no-verify|help)\b|push .*(?:--force|-f)\b")
"""Pattern for options that skip a check instead of passing it, or only print help."""
_PATH: Final = re.compile(r"[\w.@~-]*/\S*|[\w@-]+\.\w{1,5}\b\S*")
_PREPARATION: Final = phrases("command_repairs.preparation")
"""Pattern for commands that another command may depend on, such as `npm install` or `docker compose up`."""
_RUN: Final = {
    "test": "Run tests with", "lint": "Lint with", "format": "Format with", "type check": "Check types with",
    "build": "Build with", "install": "Install with", "run": "Start with", "release": "Release with",
    "check": "Run checks with",
}  # fmt: skip


class Repair(Struct, frozen=True):
    """Failed command and the command that worked.

    Attributes:
        error: Line of the output that states the failure.
        before: True if `worked` had to run before the failed command, which then succeeded.
        folder: Folder in which the same command worked. Empty if the commands differ.
    """

    run: ShellRun
    failed: Segment
    later: ShellRun
    worked: Segment
    error: str
    before: bool = False
    folder: str = ""


def extract_repairs(exchange: Exchange, session: Session) -> Iterator[Observation]:
    """Yield an observation for each distinct repair of an exchange, at most `REPAIRS_MAX`."""
    turns = exchange.active_turns
    known: set[str] = set()
    for repair in filter(_is_lasting, find_repairs(turns)):
        observation = _observation(repair, exchange, session)
        if observation.title not in known and len(known) < REPAIRS_MAX:
            known.add(observation.title)
            yield observation


def _is_lasting(repair: Repair) -> bool:
    """Return whether a repair may be needed again. A corrected option of a program such as git is not."""
    return repair.before or repair.folder != "" or repair.failed.program not in _GENERAL


def find_repairs(turns: Sequence[Turn]) -> Iterator[Repair]:
    """Yield the failed commands of an exchange that another command repaired, in order."""
    runs = list(shell_runs(turns))
    for place, run in enumerate(runs):
        if run.failed and not is_stopped(run):
            later = runs[place + 1 : place + 1 + _WINDOW]
            found = _replaced(run, later, turns) or _prepared(run, later, turns)
            if found is not None:
                yield found


def error_line(output: str) -> str:
    """Return the output line that states the failure: a usage error, or else the last error, or else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not _STATUS.fullmatch(line.strip())]
    misuse = next((line for line in lines if _MISUSED.search(line)), "")
    found = misuse or next((line for line in reversed(lines) if _ERROR.match(line)), lines[-1] if lines else "")
    return found[:ERROR_MAX].rstrip()


def is_stopped(run: ShellRun) -> bool:
    """Return whether the agent or the user stopped a command, or refused it."""
    return run.failed and _STOPPED.search(run.result.text[:200]) is not None


def is_misused(output: str) -> bool:
    """Return whether an output reports a usage error, such as `unknown option`.

    The result is False for a failed test or a linter finding.
    """
    return _MISUSED.search(output) is not None


def is_misplaced(output: str) -> bool:
    """Return whether an output reports that the command does not work in its folder, such as `not a git repository`."""
    return _MISPLACED.search(output) is not None


def changes_state(run: ShellRun) -> bool:
    """Return whether a command may change files or services. Checks and commands that only show something do not."""
    return any(
        _FILE_CHANGE.match(segment.text)
        or (
            not (segment.is_reader or _SHOWING.match(segment.text))
            and (segment.task not in _CHECKS or _FIXER.search(segment.text) is not None)
        )
        for segment in run.segments
    )


def _replaced(run: ShellRun, later: Sequence[ShellRun], turns: Sequence[Turn]) -> Repair | None:
    """Return the repair by a corrected command that worked, or None.

    The corrected command has other words or another runner, or it is the same command in another folder.
    """
    output = run.result.text
    error, misused = error_line(output), is_misused(error_line(output))
    failed = next((segment for segment in run.segments if not segment.is_reader), None)
    if failed is None or not _memorable(failed):
        return None
    for other in later:
        if _edited(turns, run.position, other.position):
            return None
        if misused and other.folder not in ("", run.folder) and other.command == run.command and not other.failed:
            return Repair(run, failed, other, failed, error, folder=other.folder)
        variants = (
            each for each in other.segments if _is_variant(failed, each) and (misused or _advised(each, output))
        )
        variant = next(variants, None)
        if variant is None or len(run.segments) > 1 or error in other.result.text or is_stopped(other):
            continue
        if other.failed and is_misused(other.result.text):
            continue
        return None if other.failed else Repair(run, failed, other, variant, error)
    return None


def _prepared(run: ShellRun, later: Sequence[ShellRun], turns: Sequence[Turn]) -> Repair | None:
    """Return the repair by a command that had to run first, or None.

    The failed command must have passed after this command, without any other change in between. A command that fixes
    what a failed check reports, such as `lint --fix`, also counts.
    """
    failed, changes = run.segments[-1], list[ShellRun]()
    if len(run.segments) > 2 or failed.is_reader or not _memorable(failed):
        return None
    for other in later:
        if _edited(turns, run.position, other.position):
            return None
        if other.proves(failed.text):
            break
        if changes_state(other):
            changes.append(other)
            if _is_fixer_of(failed, other.segments[0]) and other.proves(other.segments[0].text):
                if is_misused(run.result.text):
                    return None
                break
    else:
        return None
    if len(changes) != 1 or changes[0].failed or len(changes[0].segments) != 1:
        return None
    worked = changes[0].segments[0]
    helps = _PREPARATION.search(worked.text) or _advised(worked, run.result.text)
    if not helps or worked in run.segments or not _memorable(worked):
        return None
    return Repair(run, failed, changes[0], worked, error_line(run.result.text), before=True)


def _advised(command: Segment, output: str) -> bool:
    """Return whether an output advises to run a command.

    Lines that begin with `$`, `>` or `[` do not count, because task runners print the command that they start in this
    way.
    """
    return not command.filtered and any(
        command.text in line for line in output.splitlines() if not line.lstrip().startswith(("$", ">", "["))
    )


def _memorable(command: Segment) -> bool:
    return len(command.text) <= _COMMAND_MAX


def _is_fixer_of(failed: Segment, other: Segment) -> bool:
    """Return whether a command fixes what a failed check reports, as `npm run lint:fix` does after `npm run lint`."""
    if not _FIXER.search(other.text) or _FIXER.search(failed.text):
        return False
    if other.text.startswith(f"{failed.text}:") or other.text.startswith(f"{failed.text} "):
        return True
    return failed.words[:2] == other.words[:2] and failed.task in ("lint", "format")


def _is_variant(failed: Segment, other: Segment) -> bool:
    """Return whether another command is a corrected form of a failed command.

    Either only a few words differ, or another runner starts the same task: `bun test` instead of `npm test`.
    """
    if other.is_reader or other.text == failed.text or not _memorable(other):
        return False
    if _BYPASS.search(other.text) or (_FIXER.search(other.text) and not _FIXER.search(failed.text)):
        return False
    one, two = set(failed.words), set(other.words)
    if failed.task and failed.task != other.task:
        return False
    if failed.program == other.program and one != two and all(map(_PATH.fullmatch, one ^ two)):
        return False
    if failed.task and failed.base != other.base:
        return True
    return len(one & two) >= max(2, len(one) / 2, len(two) / 2)


def _edited(turns: Sequence[Turn], start: int, end: int) -> bool:
    """Return whether files were edited between two turns."""
    return any(turn.writes and turn.kind is Kind.RESULT for turn in turns[start:end])


def _observation(repair: Repair, exchange: Exchange, session: Session) -> Observation:
    run, later = repair.run, repair.later
    roots = tuple(root for root in (session.cwd, exchange.cwd) if root)
    failed, worked = (without_roots(each.text, roots) for each in (repair.failed, repair.worked))
    place = without_roots(f" in {relative_path(repair.folder, roots)}" if repair.folder else "", roots)
    fixes = repair.before and _is_fixer_of(repair.failed, repair.worked)
    lasting = fixes or repair.folder or (repair.failed.task and repair.failed.base != repair.worked.base)
    return Observation(
        type=ObservationType.LEARNING if lasting else ObservationType.DEBUG,
        title=_title(repair, failed, worked, place),
        facts=(
            f"{'Repaired by' if repair.before else 'Worked'}: {worked}{place}",
            f"Failed: {failed}",
            *(() if fixes else (f"Error: {repair.error}",)),
        ),
        concepts=concepts([f"`{failed}` `{worked}`"], ()),
        evidence=(
            Evidence(later.line, later.line, later.quote),
            Evidence(run.line, run.line, run.quote),
            Evidence(run.result.line, run.result.line, repair.error),
        ),
        at=observed_at(exchange),
    )


def without_roots(text: str, roots: Sequence[str]) -> str:
    """Return a text in which paths below these project folders are replaced with relative paths."""
    for root in (root.rstrip("/") for root in roots):
        if root:
            text = re.sub(rf"{re.escape(root)}/(?=\w)", "", text)
            text = re.sub(rf"{re.escape(root)}/?(?![\w./-])", ".", text)
    return text


def _title(repair: Repair, failed: str, worked: str, place: str) -> str:
    """Return a title with the command that works, the command that fails, and as much of the error as fits."""
    task = repair.failed.task
    if repair.before and _is_fixer_of(repair.failed, repair.worked):
        return f"{_code(_without_paths(worked))} repairs what {_code(_without_paths(failed))} reports"
    if repair.before:
        start = f"Run {_code(worked)} when {_code(failed)} fails"
    elif place:
        start = f"Run {_code(failed)}{place}; elsewhere it fails"
    elif task and repair.failed.base != repair.worked.base:
        start = f"{_RUN[task]} {_code(worked)}; {_code(failed)} fails"
    else:
        start = _difference(failed.split(), worked.split())
    room = _TITLE_MAX - len(start) - 2
    error = repair.error.lstrip("^>*-×✗⠙ ").removeprefix("error: ").removeprefix("fatal: ")
    if len(error) > room:
        error = error[: max(0, room - 1)].rpartition(" ")[0].rstrip(" :,.") + "…"
    return f"{start}: {error}" if len(error) > _ERROR_MIN else start


def _difference(failed: Sequence[str], worked: Sequence[str]) -> str:
    """Return the correction as a title: both commands if they are short, or else only the words that differ."""
    whole = f"Use {_code(' '.join(worked))} instead of {_code(' '.join(failed))}"
    if "…" not in whole:
        return whole
    removed = " ".join(word for word in failed if word not in worked)
    added = " ".join(word for word in worked if word not in failed)
    shared = next((place for place, (one, two) in enumerate(zip(failed, worked, strict=False)) if one != two), 3)
    if len(removed) + len(added) > _CODE_MAX or (shared < 2 and not (added and removed)):
        return whole
    if shared < 2:
        return f"Use `{added}` instead of `{removed}`"
    change = (
        f"use `{added}` instead of `{removed}`"
        if added and removed
        else f"add `{added}`"
        if added
        else f"leave out `{removed}`"
    )
    return f"In {_code(' '.join(failed[:shared]))}, {change}"


def _without_paths(command: str) -> str:
    return " ".join(word for word in command.split() if not _PATH.fullmatch(word))


def _code(command: str) -> str:
    return f"`{command if len(command) <= _CODE_MAX else command[: _CODE_MAX - 1].rstrip() + '…'}`"
