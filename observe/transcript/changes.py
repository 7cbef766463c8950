"""Changes that a tool call made to files, as diffs."""

from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Final

from ...archiver.reading.exchanges import TextChange
from ...core.transcript_page import DiffLine, FileDiff
from .clipping import clip_line

_CONTEXT: Final = 3
_MOST_LINES: Final = 2_000
"""Maximum lines of each text that are compared. A comparison takes quadratic time in the worst case."""
_MOST_SHOWN: Final = 1_500
"""Maximum lines of a diff that are shown."""


def count_lines(changes: Sequence[TextChange]) -> tuple[int, int]:
    """Return how many lines these changes add and remove."""
    diffs = [_lines_of(change) for change in changes]
    signs = [line.sign for lines in diffs for line in lines]
    return signs.count("+"), signs.count("-")


def file_diffs(changes: Sequence[TextChange], name: Callable[[str], str]) -> tuple[FileDiff, ...]:
    """Return a diff for each file. `name` returns the path to show for a path."""
    by_path: dict[str, list[DiffLine]] = {}
    for change in changes:
        lines = by_path.setdefault(change.path, [])
        if lines:
            lines.append(DiffLine("@", ""))
        lines += _lines_of(change)
    return tuple(_file_diff(name(path), lines) for path, lines in by_path.items())


def _file_diff(path: str, lines: Sequence[DiffLine]) -> FileDiff:
    signs = [line.sign for line in lines]
    first = tuple(DiffLine(line.sign, clip_line(line.text)) for line in lines[:_MOST_SHOWN])
    return FileDiff(path, first, signs.count("+"), signs.count("-"), max(0, len(lines) - _MOST_SHOWN))


def _lines_of(change: TextChange) -> list[DiffLine]:
    """Return the lines of a diff, with a gap in place of long unchanged parts."""
    if change.signed:
        return [_signed(line) for line in change.new.splitlines()]
    old, new = change.old.splitlines(), change.new.splitlines()
    if not old or not new or max(len(old), len(new)) > _MOST_LINES:
        return [*(DiffLine("-", line) for line in old), *(DiffLine("+", line) for line in new)]
    lines: list[DiffLine] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT):
        if lines:
            lines.append(DiffLine("@", ""))
        for operation, first, end, start, stop in group:
            if operation == "equal":
                lines += [DiffLine(" ", line) for line in old[first:end]]
            else:
                lines += [DiffLine("-", line) for line in old[first:end]]
                lines += [DiffLine("+", line) for line in new[start:stop]]
    return lines


def _signed(line: str) -> DiffLine:
    """Return a line of a patch, which begins with its sign."""
    if line.startswith("@@"):
        return DiffLine("@", line.removeprefix("@@").strip())
    return DiffLine(line[:1], line[1:]) if line[:1] in {"+", "-", " "} else DiffLine(" ", line)
