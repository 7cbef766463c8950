"""Summary of a run of tool calls in one line: `4 edits in 2 files, tests failed, then passed`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from ...archiver.lines import one_line
from ...core.reports import many
from ...core.transcript_page import Call, Outcome
from .tool_calls import COMMIT, EDIT, READ, SEARCH, SHELL, WAIT, WEB

_PARTS = 4
"""Maximum number of parts of a summary."""
_SUBJECT = 48
"""Maximum characters of the failed call that a summary names."""


def summarize_run(calls: Sequence[Call]) -> str:
    """Return one line about several calls: the changes first, then checks, and what was only read last."""
    parts = [*_edits(calls), *_checks(calls), *_commits(calls), *_failures(calls), *_others(calls)]
    first = parts[:_PARTS]
    return f"{many(len(calls), 'call')}: {', '.join(first)}" if first else many(len(calls), "call")


def _edits(calls: Sequence[Call]) -> Iterator[str]:
    edits = [call for call in calls if call.kind == EDIT and call.outcome is Outcome.DONE]
    paths = dict.fromkeys(path for call in edits for path in call.paths)
    if not edits:
        return
    counts = _line_counts(edits)
    if len(paths) == 1:
        yield f"{many(len(edits), 'edit')} in {next(iter(paths))}{counts}"
    else:
        yield f"{many(len(edits), 'edit')} in {many(len(paths), 'file')}{counts}"


def _line_counts(edits: Sequence[Call]) -> str:
    """Return the added and removed lines, such as ` +10 −8`, or an empty string if an edit has no counts."""
    if any(call.added is None for call in edits):
        return ""
    added, removed = sum(call.added or 0 for call in edits), sum(call.removed or 0 for call in edits)
    return "".join(f" {sign}{count}" for sign, count in (("+", added), ("−", removed)) if count)


def _checks(calls: Sequence[Call]) -> Iterator[str]:
    """Yield the results of each check in order, such as `tests failed, then passed`."""
    checked = [call for call in calls if call.checked and call.outcome in {Outcome.DONE, Outcome.FAILED}]
    for name in dict.fromkeys(call.checked for call in checked):
        results = ["failed" if call.outcome is Outcome.FAILED else "passed" for call in checked if call.checked == name]
        yield f"{name} {', then '.join(result for result, _ in groupby(results))}"


def _commits(calls: Sequence[Call]) -> Iterator[str]:
    commits = sum(call.kind == COMMIT and call.outcome is Outcome.DONE for call in calls)
    if commits:
        yield "committed" if commits == 1 else f"{commits} commits"


def _failures(calls: Sequence[Call]) -> Iterator[str]:
    """Yield the number of failed calls with the subject of the first, and that of refused calls."""
    failed = [call for call in calls if call.outcome is Outcome.FAILED and not call.checked]
    refused = sum(call.outcome is Outcome.REFUSED for call in calls)
    if failed:
        first = one_line(failed[0].subject, _SUBJECT) or failed[0].tool
        yield f"{len(failed)} failed ({first}{', …' if len(failed) > 1 else ''})"
    if refused:
        yield f"{refused} refused"


def _others(calls: Sequence[Call]) -> Iterator[str]:
    """Yield what was read, searched and run. Files that are read twice count once."""
    finished = [call for call in calls if call.outcome in {Outcome.DONE, Outcome.MISSING} and not call.checked]
    read = {call.subject for call in finished if call.kind == READ}
    if read:
        yield f"{many(len(read), 'file')} read"
    kinds = Counter(call.kind for call in finished)
    for kind, noun in ((SEARCH, "search"), (SHELL, "command"), (WEB, "web request")):
        if kinds[kind]:
            yield many(kinds[kind], noun, "searches" if kind == SEARCH else "")
    if kinds[WAIT]:
        yield "waited for output"
    named = Counter(call.tool for call in finished if not call.kind)
    for tool, count in named.most_common():
        yield tool if count == 1 else f"{count} × {tool}"
