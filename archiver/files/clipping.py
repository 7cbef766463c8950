"""Text as people and indexes want it: without terminal colours and NUL, and no longer than asked for."""

import re
from typing import Final

from ...core.text import without_ansi

MARGIN: Final = 1000
"""Characters beyond a cut that stay until it is known whether a secret lies across it."""
CUT: Final = "\0"
"""Stands around the number in a text that waits to be trimmed; no other text holds it."""

# Line ends on both sides, because many secrets are known by what stands behind them.
_CUT = re.compile(rf"\n{CUT}(\d{{1,15}}){CUT}\n?")
_PLAN = re.compile(r"\s*implement the following plan:?\s*", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,3}\s+(.+?)\s*$", re.MULTILINE)


def clean(text: str) -> str:
    """The text without ANSI sequences, NUL characters and surrounding blank space."""
    return without_ansi(text).replace("\0", "").strip()


def clip(text: str, limit: int | None) -> str:
    """The text, or its head and its tail when it has more than `limit` characters; None for no limit.

    What is longer keeps a margin around the cut until `trim` makes it: a secret must not be cut before it is known.
    """
    if limit is None or len(text) <= limit:
        return text
    if len(text) <= limit + 2 * MARGIN:
        return f"{text}\n{CUT}{limit}{CUT}"
    head, tail = limit * 2 // 3 + MARGIN, limit // 3 + MARGIN
    return f"{text[:head]}\n{CUT}{len(text) - head - tail}{CUT}\n{text[-tail:]}"


def trim(text: str) -> str:
    """A clipped text at its final length; every other text as it is."""
    at = text.find(CUT)
    cut = _CUT.match(text, at - 1) if at > 0 else None
    if cut is None:
        return text
    head, tail, number = text[: cut.start()], text[cut.end() :], int(cut[1])
    if tail:
        return _gapped(head[:-MARGIN], number + 2 * MARGIN, tail[MARGIN:])
    limit = number
    first, last = limit * 2 // 3, limit // 3
    return head if len(head) <= limit else _gapped(head[:first], len(head) - first - last, head[-last:])


def _gapped(head: str, left_out: int, tail: str) -> str:
    return f"{head.rstrip()}\n[… {left_out} characters left out …]\n{tail.lstrip()}"


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
