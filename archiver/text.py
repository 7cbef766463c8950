"""Text as people and indexes want it: without terminal colours and NUL, and no longer than asked for."""

import re

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def clean(text: str) -> str:
    """The text without ANSI sequences, NUL characters and surrounding blank space."""
    if "\x1b" in text:
        text = _ANSI.sub("", text).replace("\x1b", "")  # what is left of sequences that were cut
    if "\0" in text:
        text = text.replace("\0", "")
    return text.strip()


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
