"""Private spans (`<private>…</private>`) and requests not to index a session or an exchange.

Private text is stored only in the raw copies. Tags in backquotes are ignored. In a user's message, an unclosed span
extends to the end. In other text, such as program output, only closed spans count.
"""

import re
from enum import StrEnum
from typing import Final

from ..files.clipping import CUT

PLACEHOLDER: Final = "[private]"

_TAG = re.compile(r"(?<!`)<(/?)private(?:[ \t][^<>]{0,100})?>(?!`)", re.IGNORECASE)
_QUOTED = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`|\"[^\"\n]*\"|“[^”\n]*”|^[ \t]*>[^\n]*", re.DOTALL | re.MULTILINE)
_ASKED = r"(?:do\s+not|don['’]t)\s+index\s+this\s+"
_WHOLE = re.compile(
    rf"\b{_ASKED}(?:chat|conversation|session)\b|이 대화는 (?:인덱싱하지 마세요|검색에서 제외하세요)", re.IGNORECASE
)
_ONE = re.compile(rf"\b{_ASKED}(?:message|prompt|exchange)\b", re.IGNORECASE)


class Unindexed(StrEnum):
    """Reason why a line is not indexed, which is also the outcome of the line in `Source.coverage`."""

    SESSION = "unindexed-session"
    """The user excluded the whole session."""
    EXCHANGE = "unindexed-exchange"
    """The user excluded this exchange."""
    EXCLUDED = "excluded-folder"
    """The settings exclude the folder."""


def opt_out_in(prompt: str) -> Unindexed | None:
    """Return `SESSION` or `EXCHANGE` if a prompt asks not to index the session or the exchange, otherwise None.

    Requests in quotations and in code are ignored.
    """
    if "ndex" not in prompt and "NDEX" not in prompt and "이 대화는" not in prompt:
        return None
    plain = _QUOTED.sub("", prompt)
    if _WHOLE.search(plain):
        return Unindexed.SESSION
    return Unindexed.EXCHANGE if _ONE.search(plain) else None


def redact_typed(text: str, depth: int = 0) -> tuple[str, int]:
    """Replace the private spans in a user's message by `[private]`. Also return the number of spans open at its end.

    `depth` is the number of open spans before the message.
    """
    kept: list[str] = [PLACEHOLDER] if depth else []
    done = 0
    for tag in _TAG.finditer(text):
        if not depth:
            kept.append(text[done : tag.start()])
        if tag[1]:
            depth = max(0, depth - 1)
        else:
            kept += [] if depth else [PLACEHOLDER]
            depth += 1
        done = tag.end()
    if not depth:
        kept.append(text[done:])
    return "".join(kept), depth


def redact_printed(text: str) -> str:
    """Replace private spans with both tags by `[private]`, in text that the user did not type.

    If the middle of the text was cut out, one tag of a span can be missing. Then the text between the other tag and the
    cut is replaced.
    """
    head, _, rest = text.partition(CUT)
    number, _, tail = rest.partition(CUT)
    if not tail:
        return _without(text, _spans(text))
    head, tail = _without(head, _spans(head, clipped=True)), _without(tail, _spans(tail, depth=1))
    return f"{head}{CUT}{number}{CUT}{tail}"


def _spans(text: str, depth: int = 0, *, clipped: bool = False) -> list[tuple[int, int]]:
    """Return the start and end of each outermost private span. `depth` is the number of open spans before the text.

    If closing tags are missing, the last span ends at the last closing tag, or with `clipped` at the end of the text.
    """
    spans: list[tuple[int, int]] = []
    start = end = 0
    for tag in _TAG.finditer(text):
        if not tag[1]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth, end = depth - 1, tag.end()
            if not depth:
                spans.append((start, end))
    if depth and (clipped or end > start):
        spans.append((start, len(text) if clipped else end))
    return spans


def _without(text: str, spans: list[tuple[int, int]]) -> str:
    kept: list[str] = []
    done = 0
    for start, end in spans:
        kept += (text[done:start], PLACEHOLDER)
        done = end
    return "".join((*kept, text[done:]))
