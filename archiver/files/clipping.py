"""Functions that clean and clip text, and that find plans and headings in it."""

import re
from typing import Final

from ...core.text import without_ansi

MARGIN: Final = 1000
"""Extra characters that `clip` keeps on each side of a cut, so that redaction sees every secret completely."""
CUT: Final = "\0"
"""Character before and after the number in a clip marker. `clean` removes this character from all other text."""

GAP: Final = re.compile(r"\[… \d+ characters left out …\]")
"""Pattern for the line that replaces the middle of a shortened text."""

# The marker has line ends on both sides, because patterns recognise many secrets by the character after them.
_CUT = re.compile(rf"\n{CUT}(\d{{1,15}}){CUT}\n?")
_PLAN = re.compile(r"\s*implement the following plan:?\s*", re.IGNORECASE)
_HEADING = re.compile(r"^#{1,3}\s+(.+?)\s*$", re.MULTILINE)


def clean(text: str) -> str:
    """Return the text without ANSI sequences, NUL characters and surrounding whitespace."""
    return without_ansi(text).replace("\0", "").strip()


def clip(text: str, limit: int | None) -> str:
    """Return the text, shortened to its head and tail if it has more than `limit` characters.

    With `None`, the length is not limited. The head and the tail keep `MARGIN` extra characters, because redaction
    cannot recognise a secret that was cut. Call `trim` after redaction to remove the extra characters.
    """
    if limit is None or len(text) <= limit:
        return text
    if len(text) <= limit + 2 * MARGIN:
        return f"{text}\n{CUT}{limit}{CUT}"
    head, tail = limit * 2 // 3 + MARGIN, limit // 3 + MARGIN
    return f"{text[:head]}\n{CUT}{len(text) - head - tail}{CUT}\n{text[-tail:]}"


def trim(text: str) -> str:
    """Remove the extra characters from a text that `clip` shortened. Return any other text unchanged."""
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
    """Return the text with whitespace collapsed to single spaces, truncated to `limit` characters."""
    line = " ".join(text.split())
    return line if limit is None or len(line) <= limit else line[: limit - 1].rstrip() + "…"


def plan_in(prompt: str) -> str | None:
    """Return the Markdown plan that follows `Implement the following plan:` at the start of a prompt, or None."""
    opening = _PLAN.match(prompt)
    return prompt[opening.end() :] if opening else None


def heading_of(markdown: str) -> re.Match[str] | None:
    """Return the match of the first heading of level 1 to 3. Group 1 is the heading text."""
    return _HEADING.search(markdown)
