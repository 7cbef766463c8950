"""Stored text as data: shown so that it cannot act as layout, as markup, or as words of ours."""

import re
from collections.abc import Sequence

from ..core.text import readable, without_ansi
from ..core.tokens import count
from .budget import PER_TOKEN, most_that_fit

_BREAKS = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
# Controls, soft and zero-width signs (the two joiners that scripts and emoji need stay), direction overrides, tags and
# variation selectors that can carry a hidden message, private noncharacters.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e0fff]"
)
# Tags that would close our envelope or that agent programs take for their own voice.
_TAG = re.compile(r"<(?=\s*/?\s*(?:recalled|system(?:-reminder)?|function_(?:calls|results))\b|\|)", re.IGNORECASE)
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_BOLD = re.compile(r"(?<!\w)\*\*(?=\S)|(?<=\S)\*\*(?!\w)")
"""`**` at the edge of a word; between two words it is an operator, as in `2**3`."""
_LOOSE = " ,;:.(-–—"
"""What leads to words that were cut off."""
_LAYOUT = re.compile(
    r"\s*(?:#{1,6}(?:\s|$)|(?:=+|-{2,}|[*_]{3,})\s*$|\[Sidechain |"
    r"\*\*(?:User|Assistant|Task|ID|Type|Score|Title|Facts|Concepts|Files|Path|Evidence):\*\*)"
)


def clean(text: str) -> str:
    """The text without signs that no reader sees; every kind of line break becomes a newline."""
    return _UNSEEN.sub("", _BREAKS.sub("\n", without_ansi(readable(text))))


def line(text: str) -> str:
    """The text on one line, for headings, bullets and table rows."""
    return _TAG.sub("&lt;", " ".join(clean(text).split()))


def code(text: str) -> str:
    """The text as inline code."""
    return "`" + line(text).replace("`", "'") + "`"


def brief(text: str, tokens: int) -> str:
    """The text on one line and at most about `tokens` long, as many of its words as fit; of one that is too long for
    half of the room as many letters.
    """
    whole = line(text)
    if count(whole) <= tokens:
        return whole
    short = whole[: tokens * PER_TOKEN]
    words = short.split(" ")
    head = " ".join(words[: most_that_fit(lambda many: count(" ".join(words[:many])), len(words), tokens)])
    if 2 * count(head) < tokens:
        head = short[: most_that_fit(lambda length: count(short[:length]), len(short), tokens)]
    return f"{head.rstrip(_LOOSE)}…"


def marked(text: str, words: Sequence[str], before: str, after: str) -> str:
    """Return the text on one line with these whole words between two marks. Bold marks of the text itself go."""
    shown = _BOLD.sub("", line(text))
    wanted = sorted({line(word) for word in words} - {""}, key=len, reverse=True)
    if not wanted:
        return shown
    return re.sub("|".join(map(_whole, wanted)), lambda found: f"{before}{found[0]}{after}", shown)


def _whole(word: str) -> str:
    """Where blanks tell words apart. Of other scripts any pair of signs may be found."""
    return rf"(?<![^\W_]){re.escape(word)}(?![^\W_])" if word.isascii() else re.escape(word)


def block(text: str) -> str:
    """The text on as many lines as it has; code stays code, and whatever imitates our layout is escaped.

    A fence that the text leaves open is closed, so that it cannot swallow what follows.
    """
    shown: list[str] = []
    fence = ""
    for row in _TAG.sub("&lt;", clean(text).strip("\n")).split("\n"):
        mark = _FENCE.match(row)
        if mark is None:
            shown.append(row if fence or not _LAYOUT.match(row) else f"\\{row.lstrip()}")
            continue
        shown.append(row)
        if not fence:
            fence = mark[1]
        elif mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
    return "\n".join([*shown, fence] if fence else shown)
