"""Marks in a model's answer, after IDs that no tool returned to the model, and after claims without a source."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from msgspec import Struct

from ...core.cited_answer import CitedSource
from ...core.ids import canonical
from .citation_check import UNVERIFIED

NOT_READ: Final = "[not in the results]"
"""Mark after an ID that exists in the archive but that no tool returned to the model, so the model guessed it."""
NO_SOURCE: Final = "[no source]"
"""Mark after a claim without any citation."""
_ID: Final = re.compile(r"(?<![\w/-])(?:(?:obs|ex|chunk)-\d+|(?:mem|chunk)_\d+)(?!\w)", re.IGNORECASE)
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_ALONE: Final = re.compile(r"\s*(?:[-*+]\s|\d+[.)]\s|\|)")
"""Start of a list item or of a table row. Each of them is a separate claim."""
_LAYOUT: Final = re.compile(r"\s*(?:#{1,6}\s|\|[\s:|-]+$|(?:-{3,}|\*{3,}|_{3,})\s*$)")
"""Lines that are not claims: headings, horizontal rules, and the line below a table's header."""
_OWN: Final = re.compile(r"\W*(?:Probably|Nothing found)\b")
"""Start of a text that needs no source: a conclusion of the model itself, or a report that nothing was found."""
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_WORDS_MIN: Final = 4
"""Minimum number of words in a claim. Shorter lines are labels."""


class MarkedText(Struct, frozen=True):
    """Text with marks, the number of claims without a valid source, and the valid sources."""

    text: str
    unsupported: int
    sources: tuple[CitedSource, ...]


def ids_in(texts: Collection[str]) -> set[str]:
    """Return all IDs in these texts."""
    return {canonical(found[0]) for text in texts for found in _ID.finditer(text)}


def mark_claims(text: str, sources: Sequence[CitedSource], read: Collection[str]) -> MarkedText:
    """Mark cited IDs that are not in `read`, and claims without a valid source.

    A claim is a paragraph, a list item or a row of a table. A source is valid if it exists and, for
    an ID, if it is in `read`.
    """
    guessed = {source.id for source in sources if source.exists and source.id and source.id not in read}
    text = _ID.sub(lambda found: f"{found[0]} {NOT_READ}" if canonical(found[0]) in guessed else found[0], text)
    valid = tuple(source for source in sources if source.exists and source.id not in guessed)
    if not valid and text.lstrip().startswith("Nothing found"):
        return MarkedText(text, 0, valid)
    cited = re.compile("|".join(map(_pattern, valid)) or r"(?!)", re.IGNORECASE)
    lines, unsupported = text.split("\n"), 0
    for first, last in _claims(lines):
        claim = "\n".join(lines[first : last + 1])
        if not cited.search(claim):
            unsupported += 1
            if UNVERIFIED not in claim and NOT_READ not in claim:
                lines[last] = f"{lines[last].rstrip()} {NO_SOURCE}"
    return MarkedText("\n".join(lines), unsupported, valid)


def _pattern(source: CitedSource) -> str:
    named = source.id or f"{source.label}:{source.start_line}"
    return rf"(?<![\w/-]){re.escape(named)}(?!\w)"


def _claims(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the indexes of the first and the last line of each claim."""
    start = None
    in_code = False
    for number, row in enumerate([*lines, ""]):
        is_fence = _FENCE.match(row) is not None
        ends = in_code or is_fence or not row.strip() or _LAYOUT.match(row) or _ALONE.match(row)
        if start is not None and ends:
            if _is_claim(lines, start, number):
                yield start, number - 1
            start = None
        in_code ^= is_fence
        if start is None and row.strip() and not (in_code or is_fence or _LAYOUT.match(row)):
            start = number


def _is_claim(lines: Sequence[str], start: int, end: int) -> bool:
    text = " ".join(lines[start:end]).strip()
    is_header = text.startswith("|") and end < len(lines) and _LAYOUT.match(lines[end])
    return not (is_header or text.endswith(":") or _OWN.match(text)) and len(_WORD.findall(text)) >= _WORDS_MIN
