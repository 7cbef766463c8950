"""Origins of the lines of a prompt: typed by the user, or pasted from code, logs, documents, programs and agents.

A transcript marks a whole prompt as typed, although most of its text may be pasted. The shape of a line, delimiters and
phrases such as "the docs say:" distinguish the parts. A doubtful line counts as pasted, so that the text of another
author is not stored as the user's.
"""

import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from msgspec import Struct

from ..rules.salience import regex
from .languages import languages


class PartOrigin(StrEnum):
    """Origin of a line of a prompt."""

    TYPED = "typed"
    QUOTATION = "quotation"
    CODE = "code"
    LOG = "log"
    DOCUMENT = "document"
    """Headings, lists, tables and hard-wrapped paragraphs."""
    PROGRAM = "program"
    """Text of hooks and bots, and reminders by the agent's program."""
    AGENT = "agent"
    """Plans, prompts and transcripts of agents."""


class PromptPart(Struct, frozen=True):
    """Line of a prompt with its origin."""

    origin: PartOrigin
    text: str


MASK: Final = "\ufffc"
"""Character that replaces quoted characters in a masked line."""
_PAIRS: Final = {'"': '"', "“": "”", "„": "“”", "«": "»", "「": "」", "『": "』", "《": "》"}
_QUOTED: Final = regex("prompt_parts.quoted")
_DELIMITERS: Final = (
    (re.compile(r"\s*(```|~~~)"), PartOrigin.CODE),
    (re.compile(r"\s*(\"\"\"|''')"), PartOrigin.QUOTATION),
)
_TAG: Final = re.compile(r"\s*<([a-zA-Z][\w-]*)(?:\s[^<>]*)?>")
_IMAGE: Final = re.compile(r"\s*\[(?:Image|Pasted|file\b|image|(?:image|text|application)/)[^\]\n]*\]\s*$")
_QUOTE_LINE: Final = re.compile(r"\s*(?:>|\|\s?>)")
_AGENT: Final = regex("prompt_parts.agent")
"""Pattern for the beginning of an agent's text, or of a prompt for an agent."""
_MAIL: Final = regex("prompt_parts.mail")
"""Pattern for the header of an e-mail."""
_LABEL: Final = re.compile(r"\s*([^:：]{1,80}?)\s?(?::\s|：)")
_NAME: Final = re.compile(r"[@\w.-]+(?: [\w.-]+)?")
"""Pattern for the name before a chat message."""
_PROGRAM: Final = regex("prompt_parts.program")
_HEADING: Final = re.compile(r"\s{0,3}#{1,6}\s+\S|\s*[=\-─═━_*]{4,}|\s*\*\*[^*]+\*\*:?\s*$|\s*---\s*$")
_LIST: Final = re.compile(r"\s*(?:[-*+•‣▪·–—]\s+|\d{1,3}[.)]\s+|\(\d+\)\s|[①-⑳]|\||\[[ xX]\])\s*\S?")
_LOG: Final = regex("prompt_parts.log")
_CODE: Final = regex("prompt_parts.code")
_COLON: Final = re.compile(r"[:：]\s*$")
_WRAPPED_MIN, _WRAPPED_MAX = 55, 110
"""Width range of lines of a hard-wrapped paragraph."""


class _Reader:
    """State while the lines of a prompt are read."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self._last_lines: dict[str, int] = {}
        self.closing: tuple[str, ...] = ()
        """Texts that end the delimited block. The tuple is empty outside a block."""
        self.delimited = PartOrigin.QUOTATION
        self.rest: PartOrigin | None = None
        """Origin of all following lines."""
        self.block: PartOrigin | None = None
        """Origin of the lines up to the next empty line."""
        self.announced = False
        """True after a phrase that announces the text of another author."""
        self.colon = False
        """True after a line that ends with a colon."""
        self.mentioned = False
        """True if the paragraph mentions a text of another author."""

    def read(self, number: int) -> PartOrigin:
        """Return the origin of a line that is not empty."""
        line = self.lines[number]
        if self.closing:
            if any(end in line for end in self.closing):
                self.closing = ()
            return self.delimited
        if opened := self._opened(number):
            return opened
        self.rest = self.rest or self._rest(number)
        if self.rest:
            return self.rest
        if origin := self._shaped(number):
            self.block, self.announced, self.colon = origin, False, False
            return origin
        if self.announced:
            self.rest = PartOrigin.QUOTATION
            return self.rest
        if self.colon:
            self.block, self.colon = PartOrigin.DOCUMENT, False
        if self.block:
            return self.block
        self._typed(number)
        return PartOrigin.TYPED

    def end_paragraph(self) -> None:
        """Reset the state at an empty line, which ends a paragraph."""
        self.block = None
        self.announced = self.announced or self.mentioned
        self.mentioned = False

    def _opened(self, number: int) -> PartOrigin | None:
        """Return the origin of a delimited block that starts on this line."""
        line = self.lines[number]
        for pattern, origin in _DELIMITERS:
            if opening := pattern.match(line):
                return self._open((opening.group(1),), origin, line[opening.end() :])
        if tag := _TAG.match(line):
            end = f"</{tag.group(1)}>"
            if end in line or self._ends_below(number, (end,)):
                return self._open((end,), PartOrigin.PROGRAM, line)
        quoted = line.strip()
        ends = tuple(_PAIRS.get(quoted[0], ""))
        if ends and not any(end in quoted[1:] for end in ends) and self._ends_below(number, ends):
            return self._open(ends, PartOrigin.QUOTATION, "")
        return None

    def _ends_below(self, number: int, closing: tuple[str, ...]) -> bool:
        """Return whether one of the texts occurs in the lines below."""
        for end in closing:
            if end not in self._last_lines:
                self._last_lines[end] = max((place for place, line in enumerate(self.lines) if end in line), default=-1)
        return any(self._last_lines[end] > number for end in closing)

    def _open(self, closing: tuple[str, ...], origin: PartOrigin, left: str) -> PartOrigin:
        """Start a delimited block, unless `left`, the rest of its first line, already ends the block."""
        self.announced = self.colon = self.mentioned = False
        self.block, self.delimited = None, origin
        self.closing = () if any(end in left for end in closing) else closing
        return origin

    def _rest(self, number: int) -> PartOrigin | None:
        """Return the origin of this and all following lines if the line starts a document or another agent's text."""
        line = self.lines[number]
        if _AGENT.match(line):
            return PartOrigin.AGENT
        if _MAIL.match(line):
            return PartOrigin.QUOTATION
        if _PROGRAM.match(line):
            return PartOrigin.PROGRAM
        if _HEADING.match(line) and self.block is not PartOrigin.CODE and not self._code_follows(number):
            return PartOrigin.DOCUMENT
        return None

    def _code_follows(self, number: int) -> bool:
        """Return whether a line that starts with `#` is a comment above code."""
        return number + 1 < len(self.lines) and _CODE.match(self.lines[number + 1]) is not None

    def _shaped(self, number: int) -> PartOrigin | None:
        """Return the origin of a line if the shape of the line shows it."""
        line = self.lines[number]
        if _QUOTE_LINE.match(line):
            return PartOrigin.QUOTATION
        if _IMAGE.match(line):
            return None
        if _LOG.match(line):
            return PartOrigin.LOG
        if _CODE.match(line) or _HEADING.match(line):
            return PartOrigin.CODE
        if _LIST.match(line) or self._wrapped(number):
            return PartOrigin.DOCUMENT
        return None

    def _wrapped(self, number: int) -> bool:
        """Return whether three lines from this line on have about the same width, as in an e-mail or a document."""
        near = self.lines[number : number + 3]
        widths = [len(line) for line in near]
        return (
            len(near) == 3
            and min(widths[:2]) >= _WRAPPED_MIN
            and max(widths) <= _WRAPPED_MAX
            and all(line[-1:].isalpha() or line[-1:] == "," for line in near[:2])
            and near[2].strip() != ""
        )

    def _typed(self, number: int) -> None:
        """Record which lines after a typed line belong to another author."""
        line = mask_quotations(self.lines[number])
        attributed = any(each.attributions.search(line) for each in languages())
        named = any(each.sources.search(line) for each in languages())
        self.mentioned = self.mentioned or named
        self.colon = _COLON.search(line) is not None
        self.announced = attributed or (self.colon and named)


def prompt_parts(prompt: str) -> Iterator[PromptPart]:
    """Yield the lines of a prompt with their origins. Empty lines are omitted."""
    lines = prompt.split("\n")
    reader = _Reader(lines)
    for number, line in enumerate(lines):
        if line.strip():
            yield PromptPart(reader.read(number), line)
        else:
            reader.end_paragraph()


def typed_text(line: str) -> str:
    """Return a typed line in which quotations are masked without changing its length.

    Text after phrases such as "the docs say", or after the name of a speaker and a colon, is masked too.
    """
    masked = mask_quotations(line)
    if (label := _LABEL.match(masked)) and _is_foreign(label.group(1)):
        masked = masked[: label.end()] + MASK * (len(masked) - label.end())
    for language in languages():
        if attribution := language.attributions.search(masked):
            masked = masked[: attribution.end()] + MASK * (len(masked) - attribution.end())
    return masked


def _is_foreign(label: str) -> bool:
    """Return whether a label before a colon names a person or a document as the author of the text after the colon."""
    if any(each.sources.search(label) for each in languages()):
        return True
    own = any(each.openers.fullmatch(label) or each.lasting.search(f"{label}: ") for each in languages())
    return not own and _NAME.fullmatch(label) is not None


def mask_quotations(line: str) -> str:
    """Return a line in which quoted text is masked without changing the length of the line."""
    masked = _QUOTED.sub(lambda quoted: MASK * len(quoted.group()), line)
    for opening, ends in _PAIRS.items():
        start = masked.rfind(opening)
        if start >= 0 and not any(end in masked[start + 1 :] for end in ends):
            masked = masked[:start] + MASK * (len(masked) - start)
    return masked
