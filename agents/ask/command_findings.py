"""Findings from the shell commands of past sessions: the commands for a task, and the fixes of an error.

They answer the same questions as `palaver how` (such as "how do I run the tests") and `palaver fix`.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from ...core.amount import many
from ...core.cited_answer import CitedSource, Finding, FindingKind
from ...core.commands import KnownFix, ProjectCommand, Remedy
from ...core.errors import InvalidInput
from ...core.query import Filters
from ...core.results import Detail
from ...observe.commands.known_fixes import known_fixes
from ...observe.commands.project_commands import parse_task, project_commands, words_of
from .metered_archive import MeteredArchive
from .question_plan import key_words

_HOW: Final = re.compile(
    r"\W*(?:how (?:do|can|could|should|would|did) (?:i|we|you|one)|how to|(?:what|which) (?:is the )?commands?)\b",
    re.IGNORECASE,
)
_FIX: Final = re.compile(
    r"""\W*(?: (?:how\ (?:did|do|can)\ (?:i|we|you)|how\ to)\ (?:fix|solve|repair|resolve)
    | what\ (?:fixe[sd]|solve[sd]|repair(?:s|ed)) | (?:known\ )?fix(?:es)?\ (?:for|of) | have\ we\ seen
    | why\ (?:do|does|did)\ (?:i|we)\ (?:get|see) )\b (?:\ (?:the|this|an?))? (?:\ errors?\b:?)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ERROR: Final = re.compile(
    r"\b(?:\w*Error|\w*Exception|error|fatal|panic)\b:|\b(?:cannot|can['’]t|could not|no such|not found|undefined"
    r"|unknown|unrecognized|unexpected|permission denied|exit (?:code|status))\b",
    re.IGNORECASE,
)
"""Pattern for words of error messages."""
_QUOTED: Final = re.compile(r"[\"“`]([^\"”`]{8,})[\"”`]")
_FAILURE: Final = re.compile(r"\b(?:errors?|exceptions?|messages?|fail(?:s|ed)?|crash(?:es|ed)?)\b", re.IGNORECASE)
"""Pattern for words such as `error` or `failed`. A quotation in a question counts as an error only beside such a
word."""
_GENERAL: Final = frozenset(
    "all app application code command commands correctly here locally new program project repo repository use used"
    " using version whole".split()
)
"""Words of a question that do not narrow down its task, such as "new" or "project"."""
_COMMANDS: Final = 3
"""Maximum number of commands in an answer."""
_FIXES: Final = 2
"""Maximum number of fixes in an answer."""
_ERROR_WORDS: Final = 2
"""Minimum number of key words in an error message that is searched for."""


class FoundCommands(Struct, frozen=True):
    """Commands for a task, or fixes of an error, each with the newest exchange that shows it.

    `advice` names the command that lists all commands or fixes.
    """

    found: tuple[ProjectCommand | KnownFix, ...] = ()
    details: tuple[Detail, ...] = ()
    advice: str = ""

    @property
    def is_whole(self) -> bool:
        """True if these findings are the whole answer, so that no other entries are needed."""
        return any(isinstance(each, ProjectCommand) for each in self.found)

    def findings(self, labels: Mapping[str, str]) -> list[Finding]:
        """Return one finding per command or fix, with its exchange as the source.

        `labels` maps paths to short names.
        """
        return [_finding(each, detail, labels) for each, detail in zip(self.found, self.details, strict=True)]


def find_commands(archive: MeteredArchive, question: str, filters: Filters, here: str) -> FoundCommands:
    """Return the commands or the fixes that a question asks for, or nothing if it asks for something else.

    Commands of the project `here` are preferred. With a date filter, the result is empty, because commands have no
    dates.
    """
    if filters.after is not None or filters.before is not None:
        return FoundCommands()
    lead = _HOW.match(question)
    if lead and (commands := _commands(archive, question[lead.end() :], filters.projects, here)):
        return _opened(archive, commands, f"To list all commands: palaver how {shlex.quote(commands[0].task)}")
    error = _error_of(question)
    if fixes := _fixes(archive, error, filters.projects):
        return _opened(archive, fixes, f"To list all fixes: palaver fix {shlex.quote(error)}")
    return FoundCommands()


def _commands(archive: MeteredArchive, asked: str, projects: tuple[str, ...], here: str) -> Sequence[ProjectCommand]:
    """Return the commands of one project for the task that `asked` names, or one command of each of several projects.

    All words of `asked` must name the task, the project, or a part of the command.
    """
    task, words = parse_task(asked)
    if not task:
        return ()
    store = archive.archive.store
    found = project_commands(store, task, projects or ((here,) if here else ()))
    if not found and here and not projects:
        found = project_commands(store, task)
    found = [each for each in found if words - _GENERAL <= words_of(f"{each.project} {each.command} {each.usual}")]
    first: dict[str, ProjectCommand] = {}
    for each in found:
        first.setdefault(each.project, each)
    return (list(first.values()) if len(first) > 1 else found)[:_COMMANDS]


def _fixes(archive: MeteredArchive, error: str, projects: tuple[str, ...]) -> Sequence[KnownFix]:
    try:
        return known_fixes(archive.archive, archive.archive.store, error, projects)[:_FIXES] if error else ()
    except InvalidInput:  # The line that states the failure is too short to search for.
        return ()


def _error_of(question: str) -> str:
    """Return the error whose fix a question asks for, or an empty text."""
    lead, quoted, states_error = _FIX.match(question), _QUOTED.search(question), _ERROR.search(question)
    if quoted and (lead or states_error or _FAILURE.search(question)):
        error = quoted[1]
    elif lead:
        error = question[lead.end() :]
    else:
        error = question if states_error else ""
    return error.strip(" ?.:") if len(key_words(error)) >= _ERROR_WORDS else ""


def _opened(archive: MeteredArchive, found: Sequence[ProjectCommand | KnownFix], advice: str) -> FoundCommands:
    """Fetch the exchange of each command or fix, and return them together with the advice."""
    by_id = {detail.id: detail for detail in archive.details([each.id for each in found])}
    return FoundCommands(tuple(found), tuple(by_id[each.id] for each in found), advice)


def _finding(found: ProjectCommand | KnownFix, detail: Detail, labels: Mapping[str, str]) -> Finding:
    source = CitedSource(
        found.id, detail.session_id, labels[detail.path], detail.path, detail.start_line, detail.end_line
    )
    if isinstance(found, KnownFix):
        return Finding(FindingKind.FIX, f"{_remedy(found)}. The error: {found.error}", (source,), found.at)
    runs = f"{many(found.succeeded + found.failed, 'run')} in {many(found.sessions, 'session')}"
    failed = f", {found.failed:,} failed" if found.failed else ""
    mostly = f", mostly `{found.usual}`" if found.usual != found.command else ""
    project = f"{found.project}: " if found.project else ""
    return Finding(FindingKind.COMMAND, f"{project}`{found.command}`{mostly} ({runs}{failed}).", (source,), found.at)


def _remedy(fix: KnownFix) -> str:
    match fix.remedy:
        case Remedy.INSTEAD:
            return f"`{fix.worked}` worked instead of `{fix.command}`"
        case Remedy.BEFORE:
            return f"`{fix.command}` worked after `{fix.worked}`"
        case Remedy.EDIT:
            return f"`{fix.command}` worked after edits of {', '.join(f'`{file}`' for file in fix.files)}"
