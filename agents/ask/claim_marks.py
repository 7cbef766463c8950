"""Marks in a model's answer, after IDs that no tool returned to the model, and after claims without a source."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from ...core.cited_answer import CitedSource
from ...core.ids import canonical
from ...core.sentences import sentences
from .citation_check import PUBLIC_ID, UNVERIFIED

NOT_READ: Final = "[not in the results]"
"""Mark after an ID or lines that exist in the archive but that no tool returned to the model, so the model guessed."""
NO_SOURCE: Final = "[no source]"
"""Mark after a claim without any citation."""
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_ALONE: Final = re.compile(r"\s*(?:[-*+]\s|\d+[.)]\s|\|)")
"""Pattern for the start of a list item or of a table row. Each of them is a separate claim."""
_LAYOUT: Final = re.compile(r"\s*(?:#{1,6}\s|\|[\s:|-]+$|(?:-{3,}|\*{3,}|_{3,})\s*$)")
"""Pattern for lines that are not claims: headings, horizontal rules, and the line below a table's header."""
_OWN: Final = re.compile(r"(?:\d+[.)]\s)?\W*(?:Probably|Nothing found)\b")
"""Pattern for the start of a claim that needs no source: the model's own conclusion, or that nothing was found."""
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_WORDS_MIN: Final = 4
"""Minimum number of words in a claim without a full stop. A shorter line is a label. With a full stop, one word less is
enough."""
_STOP: Final = re.compile(r"[.!?](?!\w)")
_AFTER_STOP: Final = re.compile(r"(?:\s*[\[(](?:[^\[\]()\n]|\[[^\]\n]*\])*[\])][.,;]?(?=\s|$))+")
"""Pattern for brackets after a sentence. They belong to the sentence if they contain a citation."""
_REFERENCE: Final = re.compile(rf"{PUBLIC_ID}|:\d+")


class MarkedText(Struct, frozen=True):
    """Text with marks, the number of claims without a valid source, and the sources that the model read."""

    text: str
    unsupported: int
    sources: tuple[CitedSource, ...]


def ids_in(texts: Collection[str]) -> set[str]:
    """Return all IDs in these texts."""
    return {canonical(found[0]) for text in texts for found in re.finditer(PUBLIC_ID, text)}


def mark_claims(text: str, sources: Sequence[CitedSource], is_read: Callable[[CitedSource], bool]) -> MarkedText:
    """Mark citations of entries that the model did not read, and claims without a valid citation.

    A claim is a sentence, or a row of a table. A citation supports the sentence that contains it. A citation in the
    last sentence of a paragraph or list item supports all sentences of that paragraph or item. A code fence around the
    whole text is removed.
    """
    existing = [source for source in sources if source.exists]
    valid = tuple(filter(is_read, existing))
    text = _any_of([source for source in existing if source not in valid]).sub(rf"\g<0> {NOT_READ}", text)
    cited = _any_of(valid)
    lines, unsupported = unwrapped(text).split("\n"), 0
    for first, last in _blocks(lines):
        block = "\n".join(lines[first : last + 1]).rstrip()
        claims = list(_claims(block))
        if not claims or cited.search(block[slice(*claims[-1])]):
            continue
        for start, end in reversed(claims):
            claim = block[start:end]
            if not _is_claim(claim) or cited.search(claim):
                continue
            unsupported += 1
            if UNVERIFIED not in claim and NOT_READ not in claim:
                block = f"{block[:end]} {NO_SOURCE}{block[end:]}"
        lines[first : last + 1] = block.split("\n")
    return MarkedText("\n".join(lines), unsupported, valid)


def unwrapped(text: str) -> str:
    """Return a text without the code fence around it, if there is one."""
    lines = text.strip().split("\n")
    fences = [number for number, row in enumerate(lines) if _FENCE.match(row)]
    if not fences or fences[0] != 0:
        return text
    if len(fences) == 1:
        return "\n".join(lines[1:])
    return "\n".join(lines[1:-1]) if fences[-1] == len(lines) - 1 and len(fences) % 2 == 0 else text


def _any_of(sources: Iterable[CitedSource]) -> re.Pattern[str]:
    """Return a pattern that finds any citation of these sources in a text."""
    return re.compile("|".join(map(_pattern, sources)) or r"(?!)", re.IGNORECASE)


def _pattern(source: CitedSource) -> str:
    if source.id:
        kind = source.id.rstrip("0123456789")
        return rf"(?<![\w/-]){re.escape(kind)}0*{source.id.removeprefix(kind)}(?!\w)"
    last = f"-{source.end_line}"
    lines = f"{source.start_line}(?:{last})?" if source.start_line == source.end_line else f"{source.start_line}{last}"
    return rf"(?<![\w/.-]){re.escape(source.label)}:{lines}(?!\w|-\d)"


def _blocks(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last line of each paragraph, list item and row of a table."""
    start = None
    in_code = False
    for number, row in enumerate([*lines, ""]):
        is_fence = _FENCE.match(row) is not None
        ends = in_code or is_fence or not row.strip() or _LAYOUT.match(row) or _ALONE.match(row)
        if start is not None and ends:
            is_header = lines[start].lstrip().startswith("|") and _LAYOUT.match(row)
            if not is_header:
                yield start, number - 1
            start = None
        in_code ^= is_fence
        if start is None and row.strip() and not (in_code or is_fence or _LAYOUT.match(row)):
            start = number


def _claims(block: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence with the citations after it. A row of a table is one sentence."""
    if block.lstrip().startswith("|"):
        yield 0, len(block)
        return
    end = 0
    for start, stop in sentences(block):
        if stop <= end:
            continue
        begins = max(start, end)
        after = _AFTER_STOP.match(block, stop)
        end = after.end() if after and _REFERENCE.search(after[0]) else stop
        yield begins, end


def _is_claim(text: str) -> bool:
    if text.endswith(":") or _OWN.match(text.lstrip()):
        return False
    return len(_WORD.findall(text)) >= _WORDS_MIN - bool(_STOP.search(text))
