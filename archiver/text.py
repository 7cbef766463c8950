"""Text as people and indexes want it: without terminal colours and NUL, and no longer than asked for."""

import re

from ..core.text import without_ansi

_PLAN = re.compile(r"\s*implement the following plan:?\s*", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,3}\s+(.+?)\s*$", re.MULTILINE)


def clean(text: str) -> str:
    """The text without ANSI sequences, NUL characters and surrounding blank space."""
    return without_ansi(text).replace("\0", "").strip()


def clip(text: str, limit: int | None) -> str:
    """The text, or its head and its tail when it has more than `limit` characters; None for no limit."""
    if limit is None or len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    return f"{text[:head].rstrip()}\n[… {len(text) - head - tail} characters left out …]\n{text[-tail:].lstrip()}"


def one_line(text: str, limit: int | None = None) -> str:
    """The text with every run of blank space as one space, cut at `limit` characters."""
    line = " ".join(text.split())
    return line if limit is None or len(line) <= limit else line[: limit - 1].rstrip() + "…"


def plan_in(prompt: str) -> str | None:
    """The plan that a prompt hands over, in markdown; None where it does not. Claude Code words the opening."""
    opening = _PLAN.match(prompt)
    return prompt[opening.end() :] if opening else None


def heading_of(markdown: str) -> re.Match[str] | None:
    """The first heading of one of the three upper levels; its words are group 1."""
    return _HEADING.search(markdown)
