"""Project commands: the commands with which a project is tested, linted, built, installed, run and so on."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct, field

from ...archiver.store import Store, StoredExchange
from ...core import ids
from ...core.conversation import UNINDEXED, Milliseconds, Session
from ...core.home import working_folders
from ...core.reports import ProjectCommand
from ...search.query.tokenizer import label, project_labels
from ..rules.shell_commands import TASKS, Segment, ShellRun, is_misused, shell_runs

EXCHANGES: Final = 3_000
"""Number of exchanges that are read, newest first. Reading them takes about a second."""
_BATCH: Final = 200
_WORD: Final = re.compile(r"[\w:.@/-]+")
_STOP_WORDS: Final = frozenset(
    "a an and are can command do does for how i in is it my of our project the this to we what which with".split()
)
GENERAL_WORDS: Final = frozenset(
    "all app application code command commands correctly here locally new program project repo repository use used"
    " using version whole".split()
)
"""Words of a question that do not narrow down its task, such as "new" or "project"."""
_TASK_NAMES: Final = {
    **{word: task for task, words in TASKS.items() for word in words},
    "formatting": "format", "running": "run", "types": "type check", "type": "type check", "typing": "type check",
    "server": "run", "compile": "build",
    "dependencies": "install", "setup": "install", "style": "format", "linter": "lint", "formatter": "format",
    "typechecker": "type check", "unit": "test", "launch": "run",
}  # fmt: skip


class _Usage(Struct):
    """Runs of one command.

    `forms` counts the full texts of its successful runs. `newest` is the time, the exchange key, and the first and last
    line of the last successful run.
    """

    task: str
    forms: Counter[str] = field(default_factory=Counter[str])
    succeeded: int = 0
    failed: int = 0
    sessions: set[int] = field(default_factory=set[int])
    newest: tuple[Milliseconds, int, int, int] = (-1, 0, 0, 0)


def project_commands(store: Store, task: str, projects: Sequence[str] = ()) -> list[ProjectCommand]:
    """Return the commands that succeeded at a task. Commands of the most recently used project come first.

    Within a project, the most frequent command comes first. `task` names one of `TASKS`, as in `tests` or `run the unit
    tests`. Any other text selects the commands that contain all its words, and an empty text the commands of all tasks.
    """
    wanted, words = parse_task(task)
    if task.strip() and not (wanted or words):
        return []
    usages: dict[tuple[str, str], _Usage] = {}
    for stored, session in _newest(store, projects):
        for run in shell_runs(stored.exchange.active_turns):
            for segment in run.segments:
                if _matches(segment, wanted, words):
                    usage = usages.setdefault((session.project, segment.base), _Usage(segment.task))
                    _count(usage, stored, run, segment)
    found = [_command(project, base, usage) for (project, base), usage in usages.items() if usage.succeeded]
    if wanted and words:
        found = [each for each in found if words <= words_of(f"{each.command} {each.usual}")] or found
    used = {each.project: max(other.at or 0 for other in found if other.project == each.project) for each in found}
    return sorted(
        found, key=lambda each: (used[each.project], each.project, each.sessions, each.succeeded), reverse=True
    )


def missing_words(task: str, commands: Sequence[ProjectCommand]) -> tuple[str, ...]:
    """Return the words of a text that narrow down its task, and that neither a command nor its project contains."""
    named, words = parse_task(task)
    contained = (words_of(f"{each.project} {each.command} {each.usual}") for each in commands)
    return tuple(sorted(words.difference(GENERAL_WORDS, *contained))) if named and commands else ()


def known_tasks(store: Store, projects: Sequence[str] = ()) -> list[str]:
    """Return the tasks for which successful commands are archived, in the order of `TASKS`."""
    found = {
        segment.task
        for stored, _ in _newest(store, projects)
        for run in shell_runs(stored.exchange.active_turns)
        if not run.failed
        for segment in run.segments
    }
    return [task for task in TASKS if task in found]


def parse_task(text: str) -> tuple[str, frozenset[str]]:
    """Return the task that a text names, or an empty text, and the other words of the text."""
    words = [word.lower().strip(".:?!") for word in _WORD.findall(text)]
    named = {word: task for word in words if (task := _TASK_NAMES.get(word) or _TASK_NAMES.get(_stem(word)))}
    tasks = list(dict.fromkeys(named.values()))
    task = next((each for each in tasks if each not in ("run", "check")), tasks[0] if tasks else "")
    others = frozenset(word for word in words if word and word not in named and word not in _STOP_WORDS)
    return task, others


def _stem(word: str) -> str:
    return word.removesuffix("ing").removesuffix("s")


def _matches(segment: Segment, task: str, words: frozenset[str]) -> bool:
    if task:
        return segment.task == task
    if not words:
        return bool(segment.task)
    return words <= words_of(segment.base) and not segment.is_reader


def words_of(command: str) -> frozenset[str]:
    """Return the words of a command in lower case and their parts: `test:unit` also gives `test` and `unit`."""
    return frozenset(part for word in command.lower().split() for part in (word, *re.split(r"[^\w]+", word)))


def is_in_projects(session: Session, projects: Sequence[str]) -> bool:
    """Return whether a session belongs to one of these projects, given by name or folder."""
    wanted, folders = frozenset(project_labels(projects)), [*map(label, working_folders(session.cwd))]
    return label(session.project) in wanted or any(
        folder == each or folder.startswith(f"{each}/") for each in wanted for folder in folders
    )


def _newest(store: Store, projects: Sequence[str]) -> Iterator[tuple[StoredExchange, Session]]:
    """Yield the newest exchanges of these projects, or of all projects, except those excluded from the index."""
    sessions = {
        number: session
        for number, session in store.sessions.all().items()
        if UNINDEXED not in session.links and (not projects or is_in_projects(session, projects))
    }
    outlines = [each for each in store.exchanges.outlines() if each.session in sessions]
    outlines.sort(key=lambda each: each.at or 0, reverse=True)
    keys = [each.key for each in outlines[:EXCHANGES]]
    for start in range(0, len(keys), _BATCH):
        for stored in store.exchanges.load(keys[start : start + _BATCH]).values():
            yield stored, sessions[stored.session]


def _count(usage: _Usage, stored: StoredExchange, run: ShellRun, segment: Segment) -> None:
    """Count a run as a success or a failure.

    The exit status of a filtered command is that of the filter, such as `tail`. Such a run counts as a failure if the
    output reports a usage error, such as `unknown option`.
    """
    failed = run.failed or (segment.filtered and is_misused(run.result.text))
    usage.failed += failed
    usage.succeeded += not failed
    usage.sessions.add(stored.session)
    if not failed:
        usage.forms[segment.text] += 1
        at = stored.exchange.ended or stored.exchange.started or 0
        usage.newest = max(usage.newest, (at, stored.key, run.line, run.result.line))


def _command(project: str, base: str, usage: _Usage) -> ProjectCommand:
    at, key, *lines = usage.newest
    usual = usage.forms.most_common(1)[0][0]
    return ProjectCommand(
        ids.show("exchange", key), project, at or None, usage.task, base, usual, usage.succeeded, usage.failed,
        len(usage.sessions), *lines,
    )  # fmt: skip
