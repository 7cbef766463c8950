"""Functions for sentences: strip Markdown, split, truncate at clauses, and build titles."""

import re
from collections.abc import Iterable, Iterator

from .clauses import complete_clauses, end_at_clause

_CODE_SPAN = re.compile(r"(`+)([^`\n]+)\1")
_LINK = re.compile(r"!?\[([^\]\n]{1,200})\]\((?:[^()\s]|\([^()\s]*\)){1,400}\)")
_TAG = re.compile(r"</?(?:b|i|em|strong|br|p|code|sub|sup|kbd)\s*/?>", re.IGNORECASE)
_EMPHASIS = re.compile(r"(?<![\w*/])\*(?=[^\s*])([^*\n]{1,80})(?<=[^\s*])\*(?![\w*/])")
_SPACE = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"[.!?]+[\"'”’)\]*`]*(?=\s+[^\sa-z]|\s*$)|[。！？]")
_ABBREVIATED = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|no|fig)\.$|^\s*\d{1,2}\.$", re.IGNORECASE)
_OPENER = re.compile(
    r"""(?:(?:ok|okay|great|good|nice|cool|perfect|thanks|thank\ you|please|pls|also|and|now|then|so|hey|hi|hello|well
    |wait|yes|yep|yeah|sure|h+m+|uh+|a+h+|oh|omg|omfg|wtf|dude|my\ dude|alright|actually|indeed|first)\b[,.!:\s]+
    |no[,.!]\s+
    |(?:i\ remember\ now|for\ that|the\ good\ news)[,:]\s+
    |(?:task|scope|goal|request|todo)\s?:\s+
    |[,;:+*>)\]]+\s*(?=\w)
    |[\-–—]+\s+(?=\w)
    |(?:['"‘“][/~][^'"’”]+['"’”]|https?://\S+|/\S+/\S+)[\s,:;-]+(?=\w+[\s,]+\w+)
    |(?:can|could|would|will)\ (?:you|we)(?:\ please|\ also|\ maybe|\ now|\ just)*\s+
    |i(?:\ would|'d)?\ (?:like|want|need)(?:\ you)?\ to\s+
    |i\ think\ (?:that\ )?
    |we\ (?:should|must|need\ to|have\ to|could)(?:\ also|\ now)?\s+(?!not\b)
    |let['’]?s\s+|go\ ahead\ and\s+)""",
    re.IGNORECASE | re.VERBOSE,
)
_PARENTHESIS = re.compile(r"(?<=\S) \([^()]*\)")
_LOOSE_ENDS = " .:;,!。"
_LEFT_MIN = 0.25
"""Minimum length of text truncated at the end of a clause, as a share of the limit.

If the last clause ends earlier, the text is truncated between words.
"""


def code_spans(markdown: str) -> list[str]:
    """Return the texts between backquotes."""
    return [span.group(2) for span in _CODE_SPAN.finditer(markdown)]


def strip_markdown(markdown: str) -> str:
    """Return one line without emphasis, link targets and backquotes. Code keeps its characters."""
    pieces: list[str] = []
    end = 0
    for span in _CODE_SPAN.finditer(markdown):
        pieces += (_unmarked(markdown[end : span.start()]), span.group(2))
        end = span.end()
    pieces.append(_unmarked(markdown[end:]))
    return _SPACE.sub(" ", "".join(pieces)).strip()


def _unmarked(text: str) -> str:
    text = _EMPHASIS.sub(r"\1", _TAG.sub(" ", _LINK.sub(r"\1", text)).replace("**", ""))
    return "".join(char for char in text.replace("`", "") if not _is_ornament(char))


def _is_ornament(char: str) -> bool:
    if char == "\ufe0f":  # Variation selector for the coloured form of the preceding character.
        return True
    return "\u2600" <= char <= "\u27bf" or "\u2b00" <= char <= "\u2bff" or "\U0001f300" <= char <= "\U0001faff"


def sentences(line: str) -> Iterator[tuple[int, int]]:
    """Yield start and end (exclusive) of each sentence of a line, without surrounding whitespace."""
    start = 0
    code = [span.span() for span in _CODE_SPAN.finditer(line)] if "`" in line else []
    for stop in _SENTENCE_END.finditer(line):
        if any(opened < stop.start() < closed - 1 for opened, closed in code):
            continue
        if _ABBREVIATED.search(line, max(start, stop.start() - 8), stop.start() + 1):
            continue
        yield from _trimmed(line, start, stop.end())
        start = stop.end()
    yield from _trimmed(line, start, len(line))


def _trimmed(line: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = line[start:end]
    if part.strip():
        yield start + len(part) - len(part.lstrip()), start + len(part.rstrip())


def truncate(text: str, limit: int) -> str:
    """Truncate text to `limit` characters at the end of a sentence or clause, or between words."""
    if len(text) <= limit:
        return text
    head = text[: limit + 1]
    ends = [end for _, end in sentences(head) if limit * 0.4 <= end < len(head.rstrip())]
    if ends:
        return head[: ends[-1]]
    word = head.rfind(" ") if head.rfind(" ") > 0 else limit
    shortened = end_at_clause(head, word, round(limit * 0.6), round(limit * 0.35))
    return shortened if len(shortened) >= limit * _LEFT_MIN else head[:word].rstrip()


TITLE_MAX = 90
"""Maximum characters of a title."""


def shorten(text: str, limit: int) -> str:
    """Return a text of at most `limit` characters that ends with a sentence or a clause.

    A text that cannot be shortened in this way gives an empty string.
    """
    if len(text) <= limit:
        return text
    head = text[: limit + 1]
    ends = [end for _, end in sentences(head) if limit * 0.3 <= end < len(head.rstrip())]
    return head[: ends[-1]] if ends else complete_clauses(head, round(limit * 0.3))


def headline(text: str, limit: int = TITLE_MAX, code: Iterable[str] = ()) -> str:
    """Return a title in the style of a commit subject, or an empty string for a text without a short enough clause.

    Courtesies and the full stop are removed, and the first letter is capitalised. A title that is too long loses its
    parentheses, and then its last clauses. It is not cut within the texts in `code`.
    """
    title = without_opener(strip_markdown(text)).rstrip(_LOOSE_ENDS)
    if len(title) > limit:
        masked = _PARENTHESIS.sub("", title)
        for span in code:
            masked = masked.replace(span, "\ue000" * len(span))
        end = len(shorten(masked, limit).rstrip(_LOOSE_ENDS))
        title = _PARENTHESIS.sub("", title)[:end]
    first = title.split(" ", 1)[0]
    return title[:1].upper() + title[1:] if first.isalpha() and first.islower() else title


def without_opener(text: str) -> str:
    """Strip polite words from the start: `Ok, can you please add X` becomes `add X`."""
    while (opener := _OPENER.match(text)) and opener.end() < len(text):
        text = text[opener.end() :]
    return text
