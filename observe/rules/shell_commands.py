"""Shell commands of an exchange, with their tasks and results, their repairs, and signatures of errors.

A repair is a corrected command, or a command that had to run first. Precision has priority over recall. An edit after
which a failed check passes does not count as a repair. The correction of a mistyped path does not count either.

The signature of an error holds the properties by which two reports describe the same kind of error.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Final, Self

from msgspec import Struct

from ...core.conversation import Exchange, Kind, Session, Turn
from ...core.observation import Evidence, Observation, ObservationType
from .classification import concepts, relative_path
from .exchange_analysis import observed_at
from .salience import phrases, regex, text_table, word_set

TASKS: Final = {task: tuple(named.split()) for task, named in text_table("shell_commands.tasks").items()}
"""Tasks of a project, such as `test` or `build`. The words of each task indicate it in a command."""

_TASK_OF: Final = {word: task for task, words in TASKS.items() for word in words if word != "run"}
_MANY: Final = {
    "make": _TASK_OF,
    "ruff": {"format": "format"},
    "biome": {"format": "format"},
}
"""Programs that serve several tasks. The word after the program determines the task."""
SHELLS: Final = word_set("shell_commands.shells")
"""Names of tools that run a shell command, in lower case."""
_PURPOSE: Final = re.compile(r"  # [^\n]*\Z")
"""Pattern for the description that an agent appends to its command as a comment."""
_MESSAGE: Final = regex("shell_commands.message")
_PARTS: Final = regex("shell_commands.parts")
_REDIRECTION: Final = re.compile(r"\s*(?:2>&1|[12&]?>{1,2}\s?/dev/null|<\s?/dev/null)")
_PREFIX: Final = re.compile(r"\A(?:(?:[A-Z_][A-Z0-9_]*=\S*|sudo|time|command|exec|timeout \S+)\s+)+(?=\S)")
_FILTERS: Final = word_set("shell_commands.filters")
_PLAIN: Final = re.compile(r"[A-Za-z][\w:-]*")
_PLAIN_MAX: Final = 4
"""Maximum number of leading words that identify a command without a task."""
_FOLDER: Final = re.compile(r"""(?:cd|Set-Location|pushd) ("[^"]+"|'[^']+'|\S+)\Z""")
_RUNNERS: Final = frozenset("cargo deno dotnet go swift".split())
"""Programs whose subcommand `run` starts the project itself, rather than one of its scripts."""
_READERS: Final = word_set("shell_commands.readers")
"""Programs that show or move files or wait. They are not commands of a project."""


def _task_of(word: str) -> str:
    """Return the task that a word of a command indicates, or an empty string.

    The word can be a script name that contains the task: `test:unit` indicates `test`, and `css:build` indicates
    `build`.
    """
    parts = (word, word.partition(":")[0], word.rpartition(":")[2])
    return next((_TASK_OF[part] for part in parts if part in _TASK_OF), "")


class Segment(Struct, frozen=True):
    """One command of a command line, without redirections and output filters such as `| tail`."""

    text: str
    filtered: bool
    """True if the output went through a filter. The exit status is then that of the filter."""

    @property
    def words(self) -> tuple[str, ...]:
        """Words of the command."""
        return tuple(self.text.split())

    @property
    def program(self) -> str:
        """Name of the program, in lower case and without its folder."""
        return self.text.split(maxsplit=1)[0].replace("\\", "/").rsplit("/", 1)[-1].lower()

    @property
    def is_reader(self) -> bool:
        """True for a command that only shows something, waits, or moves files."""
        return self.program in _READERS

    @property
    def task(self) -> str:
        """Task that the command performs, such as `test`, or an empty string. `TASKS` lists the tasks."""
        return self._task[0]

    @property
    def base(self) -> str:
        """Command up to the word that names the task, such as `bun run test`.

        If no word names a task, these are the first words of the command.
        """
        return " ".join(self.words[: self._task[1]])

    def extends(self, command: str) -> bool:
        """Return whether this command adds arguments to another one: `git push origin` extends `git push`.

        A subcommand is not an argument: `make lint` does not extend `make`.
        """
        words, start = self.words, command.split()
        if words[: len(start)] != tuple(start) or len(words) == len(start):
            return False
        return len(start) > 1 or _PLAIN.fullmatch(words[1]) is None

    @property
    def _task(self) -> tuple[str, int]:
        """Task, and the number of words up to and including the word that names it."""
        words = self.words
        if self.is_reader or self.program in ("git", "gh") or self.text[0] in "\"'":
            return "", self._plain
        for place, word in enumerate(words[:6]):
            task = _task_of(word.rsplit("/", 1)[-1] if place == 0 else word)
            if task and word in _MANY and place + 1 < len(words) and _MANY[word].get(words[place + 1]):
                return _MANY[word][words[place + 1]], place + 2
            if task:
                return task, place + 1
            if word == "run" and place == 1 and self.program in _RUNNERS:
                return "run", place + 1
        return "", self._plain

    @property
    def _plain(self) -> int:
        """Number of leading words that are neither options nor paths, at least 1."""
        return 1 + len(list(takewhile(_PLAIN.fullmatch, self.words[1:_PLAIN_MAX])))


class ShellRun(Struct, frozen=True):
    """Call of a shell tool with its result.

    Attributes:
        position: Position of the call among the turns.
        folder: Folder that the command line changes to first. Empty if it does not change the folder.
        segments: Commands of the command line, in order.
        quote: First line of the command, verbatim.
    """

    position: int
    line: int
    result: Turn
    folder: str
    segments: tuple[Segment, ...]
    quote: str

    @property
    def failed(self) -> bool:
        """True if the tool reported a failure."""
        return self.result.failed

    @property
    def command(self) -> str:
        """Command line without folder, redirections and output filters."""
        return " && ".join(segment.text for segment in self.segments)

    def proves(self, command: str) -> bool:
        """Return whether this run shows that a command succeeded."""
        passed = self.segments if not self.failed else ()
        return any(segment.text == command and not segment.filtered for segment in passed)


def shell_runs(turns: Sequence[Turn]) -> Iterator[ShellRun]:
    """Yield the shell commands that have a result. Scripts of several lines are skipped."""
    results = {turn.call: turn for turn in turns if turn.kind is Kind.RESULT and turn.call}
    for position, turn in enumerate(turns):
        if turn.kind is not Kind.CALL or turn.tool.lower() not in SHELLS or turn.call not in results:
            continue
        text = turn.text.removeprefix(f"{turn.tool}: ")
        line = without_messages(_PURPOSE.sub("", text))
        folder, segments = command_segments(line)
        if segments and "\n" not in line:
            quote = text.split("\n", 1)[0].strip()[:120].rstrip()
            yield ShellRun(position, turn.line, results[turn.call], folder, segments, quote)


def without_messages(line: str) -> str:
    """Return a command line with `…` in place of the messages of commits and pull requests."""
    return _MESSAGE.sub(r"\1 …", line).strip()


def command_segments(line: str) -> tuple[str, tuple[Segment, ...]]:
    """Return the first folder that a command line changes to, and its commands."""
    folder, segments = "", list[Segment]()
    for parts in _split(line):
        head, *filters = parts
        text = _PREFIX.sub("", _REDIRECTION.sub("", head).strip(), count=1)
        if found := _FOLDER.match(text):
            folder = folder or (found[1].strip("\"'") if not segments else "")
        elif text:
            kept = [text, *(_REDIRECTION.sub("", part).strip() for part in filters)]
            while len(kept) > 1 and (not kept[-1] or kept[-1].split()[0].lower() in _FILTERS):
                kept.pop()
            segments.append(Segment(" ".join(" | ".join(kept).split()), len(kept) <= len(filters)))
    return folder, tuple(segments)


def _split(line: str) -> Iterator[list[str]]:
    """Yield the commands of a command line. Each is a list of the commands that pipes connect."""
    parts = [""]
    for found in _PARTS.finditer(line):
        if found["end"]:
            yield parts
            parts = [""]
        elif found["pipe"]:
            parts.append("")
        else:
            parts[-1] += found[0]
    yield parts


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

_MISUSED: Final = regex("shell_commands.misused")
"""Pattern for usage errors, such as `command not found`. A failed test or a linter finding does not match."""
_MISPLACED: Final = regex("shell_commands.misplaced")
"""Pattern for usage errors that report the wrong folder."""
_STOPPED: Final = regex("shell_commands.stopped")
"""Pattern for the results of commands that the agent or the user stopped."""
_ERROR: Final = regex("shell_commands.error")
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
_RUN: Final = text_table("shell_commands.run")


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


def skips_check(command: str) -> bool:
    """Return whether a command skips a check instead of passing it, or only prints help."""
    return _BYPASS.search(command) is not None


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
    if skips_check(other.text) or (_FIXER.search(other.text) and not _FIXER.search(failed.text)):
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


_CLASS: Final = re.compile(r"(?<![\w.])(?:([A-Za-z_]\w*(?:\.\w+)*)(?:\.|::))?([A-Z]\w*(?:Error|Exception|Warning))\b")
"""Pattern for the name of an error class with its package, such as `sqlite3.OperationalError`."""
_CODE: Final = re.compile(r"\b(?!ERRORS?\b|EXIT\b)(?:E[A-Z]{3,}|ERR_[A-Z_]+|[A-Z]{1,4}\d{3,5}|SIG[A-Z]{3,})\b")
"""Pattern for an error code, such as `ENOENT`, `TS2345`, `E0382` or `SIGSEGV`."""
_MODULE: Final = re.compile(r"(?:module|package|crate|gem|library|from|resolve)\b[^'\"`\n]{0,20}['\"`](@?[\w-]+)")
"""Pattern for the name of a library in a message, such as `No module named 'numpy.linalg'`."""
_FRAME: Final = re.compile(r"(?:node_modules|site-packages|dist-packages|gems|vendor)[/\\](@?[\w-]+)")
"""Pattern for the name of a library in the path of a stack frame."""
_VALUES: Final = regex("shell_commands.values")
"""Pattern for the parts of a message that differ between equal errors."""
_WORDS_MIN: Final = 2
"""Minimum number of words of a message that identifies an error."""


class ErrorSignature(Struct, frozen=True):
    """Error classes and codes of an error, the libraries that it names, and its message without values."""

    types: frozenset[str]
    libraries: frozenset[str]
    message: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Self:
        """Return the signature of an error, given by its message or the output of a command."""
        classes = _CLASS.findall(text)
        packages = {package.split(".")[0].lower() for package, _ in classes if package}
        named = {name.lower() for pattern in (_MODULE, _FRAME) for name in pattern.findall(text)}
        line = _CLASS.sub(" ", error_line(text))
        return cls(
            frozenset([*(name for _, name in classes), *_CODE.findall(text)]),
            frozenset(packages | named),
            tuple(_VALUES.sub(" ", line).lower().split()),
        )

    def has_message_of(self, other: Self) -> bool:
        """Return whether both errors have the same message, apart from values such as names and paths."""
        return self._shares_library(other) and len(self.message) >= _WORDS_MIN and self.message == other.message

    def has_type_of(self, other: Self) -> bool:
        """Return whether both errors have an error class or an error code in common."""
        return self._shares_library(other) and not self.types.isdisjoint(other.types)

    def _shares_library(self, other: Self) -> bool:
        """Return False if the two errors name different libraries."""
        return not self.libraries or not other.libraries or not self.libraries.isdisjoint(other.libraries)
