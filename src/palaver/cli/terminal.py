"""Rendered Markdown as a terminal shows it: styles instead of marks, and no envelope, which is for agents."""

from __future__ import annotations

import os
import re
from typing import Final

_ENVELOPE: Final = re.compile(r"</?recalled[\w-]*>\n?")
_HEADING: Final = re.compile(r"#{1,6} (.+)")
_FIELD: Final = re.compile(r"# ([A-Z][a-z]+: )(.+)")
_GROUP: Final = re.compile(r"\[[^]\n]+\]")
_COST: Final = re.compile(r"~[\d,]+ tokens\b.*")
_ID: Final = re.compile(r"(?:obs|ex|chunk)-\d+|(?:mem|chunk)_\d+")
_STRONG: Final = re.compile(r"(?<!\w)\*\*(?=\S)(.+?)(?<=\S)\*\*(?!\w)")
_ESCAPED: Final = re.compile(r"\\(?=[#=\-*_\[])")

_BOLD, _DIM, _CYAN, _END = "\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[0m"


def styled(page: str) -> str:
    """Return a page as a terminal shows it; without colours where the variable NO_COLOR is set (no-color.org)."""
    rows = "\n".join(map(_row, _ENVELOPE.sub("", page).replace("&lt;", "<").replace("&#91;", "[").split("\n")))
    return re.sub("\x1b\\[\\d*m", "", rows) if os.environ.get("NO_COLOR") else rows


def _row(row: str) -> str:
    """Return one row with its styles. The first rule that fits the whole row decides."""
    if field := _FIELD.fullmatch(row):
        return f"{_DIM}{field[1]}{_END}{field[2]}"
    if heading := _HEADING.fullmatch(row):
        return f"{_BOLD}{heading[1]}{_END}"
    if _GROUP.fullmatch(row):
        return f"{_BOLD}{row}{_END}"
    if row == "---" or _COST.fullmatch(row):
        return f"{_DIM}{row}{_END}"
    if found := _ID.match(row):
        return f"{_CYAN}{found[0]}{_END}{row[found.end() :]}"
    return _STRONG.sub(rf"{_BOLD}\1{_END}", _ESCAPED.sub("", row, count=1) if row.startswith("\\") else row)
