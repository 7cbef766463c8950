"""Quoting of stored text, so that it cannot act as layout, markup, tool syntax or a remote image.

`render.py` encloses stored text in markers with a random number, which no stored text can predict.
"""

import re
from collections.abc import Sequence

from ..core.text import end_at_clause, readable, visible
from ..core.tokens import count
from .truncation import CHARS_PER_TOKEN, largest_fitting

_BREAKS = re.compile(r"\r\n|[\r\x0b\x0c\x85\u2028\u2029]")
_TAG_NAMES = (
    r"invoke|parameters?|functions?|tools?|system|user|human|assistant|developer|model|think|thinking|instructions"
    r"|important|policy|[be]os|/?s>|(?:bash|command|function|hook|ide|local|system|task|teammate|tool|user)[-_][\w-]+"
    r"|(?:start|end)_of_\w+|(?:arg|execute|environment|extremely)_\w+|\w+_(?:calls?|instructions|results?|context|prompt)"
)
_TAG_START = rf"/?(?:[\w-]+:)?(?:{_TAG_NAMES})(?:\b|(?<=>))"
_BRACKETS = r"/?(?:(?i:INST)\b|(?:ARGS|CALL_ID|THINK|[A-Z]+_(?:CALLS|CONTENT|PROMPT|RESULTS|SETTINGS|TOOLS))\])"
# Tags of tool syntax and roles, and special tokens of models, which a host could interpret. They are escaped even in
# code. A single capitalised word is no such tag, so that components and types such as `List<User>` stay unchanged.
# DeepSeek's tokens have a full-width bar.
_HOST_TAG = re.compile(
    rf"<(?={_TAG_START}|[|｜]|/?SYS>)|<(?!/?[A-Z][a-z]+(?![\w:-]))(?=(?i:{_TAG_START}))|\[(?={_BRACKETS})"
)
# The word of a here-document, as in `cat <<EOF`, is no tag if no `>` follows.
_TAG = re.compile(rf"{_HOST_TAG.pattern}|(?!(?<=<)<[A-Z]{{2,}}\b[^>]*\Z)<(?=[/!?]?[A-Za-z])")
_ENTITIES = {"<": "&lt;", "[": "&#91;"}
# Remote address, or a reference to one, from which a Markdown viewer would load an image.
_TARGET = re.compile(r"\]\(\s*<?(?:[a-z][a-z0-9+.-]*:)?//|\]\[", re.IGNORECASE)
_LINK = re.compile(r"\[(?=\[)|(?<=\[)\[|\](?=[\[(:])")
_CODE_SPAN = re.compile(r"(?<!`)(`{1,9})(?!`)([^\n]{1,200}?)(?<!`)\1(?!`)")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")
_BOLD = re.compile(r"(?<!\w)\*\*(?=\S)|(?<=\S)\*\*(?!\w)")
"""Pattern for `**` at the edge of a word. Between two words, `**` is an operator, as in `2**3`."""
_SEPARATORS = " ,;:.(-–—"
"""Characters that are removed at the end of a truncated text."""
_EXCERPT = 100
"""Maximum characters of the text that `text_around` returns."""
_CLAUSE_MIN = 0.75
"""Minimum share of the available length at which a truncated text may end with a clause."""
_TEXT_MIN = 0.5
"""Minimum share of the available length that a text must keep when its trailing function words are removed."""
_LAYOUT = re.compile(
    r"\s*(?:#{1,6}(?:\s|$)|(?:=+|-{2,}|[*_]{3,})\s*$|\[Sidechain |"
    r"\*\*(?:User|Assistant|Task|ID|Type|Score|Title|Facts|Concepts|Files|Path|Evidence):\*\*)"
)


def clean(text: str) -> str:
    """Return the text without control, direction and invisible characters. All line breaks become newlines."""
    if text.isascii() and text.isprintable():  # true for most texts, and six times as fast as the patterns
        return text
    return _BREAKS.sub("\n", visible(readable(text)))


def inert(text: str) -> str:
    """Return cleaned text without tool syntax, role tags or remote images. Other markup is kept."""
    return _escaped(clean(text), _HOST_TAG)


def line(text: str) -> str:
    """Return the text on one line, for headings, bullets and table rows. Tags outside code spans are escaped."""
    return _prose(" ".join(clean(text).split()))


def code(text: str) -> str:
    """Return the text as inline code."""
    return "`" + _escaped(" ".join(clean(text).split()), _HOST_TAG).replace("`", "'") + "`"


def fenced(text: str, language: str = "") -> str:
    """Return the text as a block of code, which no line of the text can close."""
    plain = clean(text)
    longest = max((len(run) for run in re.findall(r"`{3,}", plain)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{plain}\n{fence}"


def unlinked(text: str) -> str:
    """Return the text without links of Markdown or of a wiki, which would lead nowhere in a vault."""
    return _LINK.sub(lambda match: f"\\{match[0]}", text)


def link_text(text: str) -> str:
    """Return a text for a link, without brackets that would end it."""
    return text.replace("[", "\\[").replace("]", "\\]")


def _escaped(text: str, tag: re.Pattern[str]) -> str:
    """Return the text with escaped tags. `![` of a remote image becomes `! [`, so that viewers show a link instead."""
    escaped = tag.sub(lambda match: _ENTITIES[match[0]], text)
    return escaped.replace("![", "! [") if tag is _TAG or _TARGET.search(text) else escaped


def _prose(row: str) -> str:
    """Return a line of prose with escaped tags. In code spans, only tags of tool syntax and roles are escaped."""
    escaped, end = "", 0
    for span in _CODE_SPAN.finditer(row):
        escaped += _escaped(row[end : span.start()], _TAG) + _escaped(span[0], _HOST_TAG)
        end = span.end()
    return escaped + _escaped(row[end:], _TAG)


def brief(text: str, tokens: int) -> str:
    """Return the text on one line, truncated to about `tokens` at the end of a clause, or else between words.

    A single word that would take more than half of the limit is also truncated.
    """
    complete = line(text)
    if count(complete) <= tokens:
        return complete
    short = complete[: tokens * CHARS_PER_TOKEN]
    words = short.split(" ")
    head = " ".join(words[: largest_fitting(lambda many: count(" ".join(words[:many])), len(words), tokens)])
    if 2 * count(head) < tokens:
        head = short[: largest_fitting(lambda length: count(short[:length]), len(short), tokens)]
    shortened = end_at_clause(head, len(head), round(len(head) * _CLAUSE_MIN))
    # Do not end before a colon, because the statement follows the colon.
    whole_words = len(shortened) < len(head) * _TEXT_MIN or complete.startswith(":", len(shortened))
    return f"{head.rstrip(_SEPARATORS) if whole_words else shortened}…"


def marked(text: str, words: Sequence[str], before: str, after: str) -> str:
    """Return the text on one line with matching whole words in bold. Bold markers of the text are removed."""
    plain = _BOLD.sub("", line(text))
    longest_first = sorted({line(word) for word in words} - {""}, key=len, reverse=True)
    if not longest_first:
        return plain
    return re.sub("|".join(map(_whole, longest_first)), lambda match: f"{before}{match[0]}{after}", plain)


def text_around(text: str, words: Sequence[str]) -> str:
    """Return about one line of a text, around the first of these words. The result is not escaped yet."""
    one_line = " ".join(text.split())
    places = [match.start() for word in words if (match := re.search(_whole(word), one_line))]
    start = max(min(places, default=0) - _EXCERPT // 3, 0)
    start = one_line.rfind(" ", 0, start) + 1
    part = one_line[start : start + _EXCERPT]
    if start + _EXCERPT < len(one_line):
        part = f"{part[: part.rfind(' ')] if ' ' in part else part}…"
    return f"…{part}" if start else part


def _whole(word: str) -> str:
    """Return a pattern for a whole word. In scripts without spaces between words, it matches any occurrence."""
    return rf"(?<![^\W_]){re.escape(word)}(?![^\W_])" if word.isascii() else re.escape(word)


def block(text: str, *, is_code: bool = False) -> str:
    """Return the text on several lines. Tags outside code, and lines that imitate Palaver's layout, are escaped.

    An open code fence is closed. `is_code` is for tool calls and tool output, which have no fences.
    """
    rows: list[str] = []
    fence = ""
    for row in clean(text).strip("\n").split("\n"):
        mark = _FENCE.match(row)
        safe = _escaped(row, _HOST_TAG) if fence or mark or is_code else _prose(row)
        if mark is None:
            rows.append(safe if fence or not _LAYOUT.match(row) else f"\\{safe.lstrip()}")
            continue
        rows.append(safe)
        if not fence:
            fence = mark[1]
        elif mark[1].startswith(fence) and not mark[2].strip():
            fence = ""
    return "\n".join([*rows, fence] if fence else rows)
