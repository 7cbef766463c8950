"""Statements: the sentences and list items of a turn, each with a quote, and detection of filler.

A statement is understandable by itself. Filler is true, but not worth remembering. Guesses, which later text may
refute, are detected too.
"""

import re
from collections.abc import Iterable, Iterator

from msgspec import Struct, field
from msgspec.structs import replace

from ...archiver.lines import GAP
from ...core.conversation import Speaker, Turn
from ...core.text import sentences, strip_markdown, truncate
from .salience import CHANGED, CUT, HOUSEKEEPING, NAMED, needs_context, phrases, regex

STATEMENT_MAX = 320
QUOTE_MAX = 120
LABEL_MAX = 90
TEXT_MAX = 24_000
"""Maximum number of characters of a turn that are parsed."""

_FENCE = re.compile(r"\s*(?:```|~~~)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s+(.+?)\s*#*\s*$")
_ITEM = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?=\S)")
_BOLD_LINE = re.compile(r"\s*\*\*[^*\n]{1,160}\*\*[^*\n]{0,80}:?\s*$")
_BOLD_SENTENCE = re.compile(r"\*\*[^*]{20,200}\*\*(?:\s*\([^()]*\))?$")
_BOLD_LABEL = re.compile(r"\*\*[^*]{20,200}\*\*(?=\W*$|\s\(|[.:]|\s[—–-]\s)")
_LABELLED = re.compile(r"\s*(?:\*\*[^*\n]+(?::\*\*|\*\*\s*(?:\([^()]*\)\s*)?[:→—–-])|`[^`\n]+`\s*(?:[:→—–-]\s|$))")
"""Pattern for a line that begins with a label, like an item of a list."""
_RULE_LINE = re.compile(r"[\s|:=\-─━*_]*$")
_DRAWING = re.compile(r"[│├└┌┐┘─━▲▼]|^\s{8,}\S")
_CODE_FILE = re.compile(r"[\w.@-]+\.[A-Za-z]{1,5}\b")
_INTRODUCTION_MIN = 24
_LEADING_ON = regex("statements.leading_on")
"""Pattern for words at the end of a line that introduce a list."""
_GENERIC = regex("statements.generic")
_SENTENCE = regex("statements.sentence")
"""Pattern for sentences, to distinguish them from headings that only name a section."""


_CONTINUES = phrases("statements.continues")
"""Pattern for the beginning of a sentence that refers to the previous sentence without a pronoun."""
_BOLD, _INTRODUCTION = -2, -1
"""Depth of a label in bold type on its own line, and of a line that introduces a list."""


class Statement(Struct, frozen=True):
    """One sentence or list item.

    `text` has no Markdown and names its subject. `quote` occurs verbatim in the turn. `raw` still contains Markdown,
    which marks code.
    """

    text: str
    quote: str
    raw: str
    line: int
    speaker: Speaker
    listed: bool = False
    """True for an item of a list or a table, False for a sentence of a paragraph."""
    heading: str = ""
    """Nearest heading, label or parent list item above the statement."""
    topic: str = ""
    """Nearest heading, label or introduction above the list or the paragraph."""
    outline: str = ""
    """All headings, labels and introductions above the list or the paragraph."""
    section: int = 0
    """Number of headings, labels and introductions above the statement in its turn."""


class _Outline(Struct):
    """Headings and parent list items above the current line, outermost first.

    `labels` are pairs of depth and text. The depth of headings is negative, and that of list items is 0 or more.
    `sections` counts the headings so far.
    """

    labels: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    sections: int = 0

    def leave(self, depth: int) -> None:
        while self.labels and self.labels[-1][0] >= depth:
            self.labels.pop()

    def enter(self, depth: int, label: str) -> None:
        self.leave(depth)
        self.labels.append((depth, label))
        self.sections += depth < 0

    @property
    def path(self) -> str:
        """All headings, labels and introductions, without the items of lists."""
        return " / ".join(label for depth, label in self.labels if depth < 0)

    @property
    def topic(self) -> str:
        """Nearest heading, label or introduction, without the items of lists."""
        return next((label for depth, label in reversed(self.labels) if depth < 0), "")

    def leave_list(self) -> None:
        """Leave a list, and the line that introduced it. The section continues below its heading."""
        if self.labels and self.labels[-1][0] >= 0:
            self.leave(_INTRODUCTION)
            self.sections += 1

    def subject(self, text: str) -> str:
        """Return the name of the nearest parent as a prefix (`Cache: `), or an empty text if the line contains it."""
        if _CODE_FILE.search(text, 0, 60):
            return ""
        for _, label in reversed(self.labels):
            if name := _name(label):
                return "" if name.lower() in text.lower() else f"{name}: "
        return ""


def _name(label: str) -> str:
    """Return the name in a heading: a file, code, or a short phrase."""
    if len(label) > LABEL_MAX:
        return ""
    code = re.search(r"`([^`]+)`", re.sub(r" \([^()]*\)", "", label))
    file = _CODE_FILE.search(code.group(1) if code else label)
    if file:
        return file.group().rsplit("/", 1)[-1]
    if code:
        return code.group(1) if len(code.group(1)) <= 40 else ""
    words = strip_markdown(label).strip(" :.")
    return words if 3 < len(words) <= 48 and not (_GENERIC.match(words) or _SENTENCE.match(words)) else ""


def statements(turn: Turn) -> Iterator[Statement]:
    """Yield the statements of a turn in order. Code blocks, drawings and separator lines are skipped."""
    outline = _Outline()
    fenced = False
    lines = _without_cut_sentences(turn.text[:TEXT_MAX].split("\n"))
    for number, line in enumerate(lines):
        if GAP.fullmatch(line):
            outline.labels.clear()  # The omitted text can contain headings.
        elif _FENCE.match(line):
            fenced = not fenced
        elif not fenced and line.strip() and not _RULE_LINE.match(line):
            for statement in _from_line(turn, line, outline, header=_is_table_header(lines, number)):
                heading = outline.labels[-1][1] if outline.labels else ""
                yield replace(
                    statement, heading=heading, topic=outline.topic, outline=outline.path, section=outline.sections
                )


def _without_cut_sentences(lines: list[str]) -> list[str]:
    """Remove the incomplete sentences around each marker of omitted text: the last before and the first after it."""
    whole = list(lines)
    for number, line in enumerate(lines):
        if not GAP.fullmatch(line):
            continue
        for start, _ in list(sentences(whole[number - 1]))[-1:] if number else ():
            whole[number - 1] = whole[number - 1][:start]
        for _, end in list(sentences(whole[number + 1]))[:1] if number + 1 < len(whole) else ():
            whole[number + 1] = whole[number + 1][end:]
    return whole


class Heading(Struct, frozen=True):
    """Heading, or line that introduces a list, in Markdown. `leads` is True if it begins the turn."""

    raw: str
    leads: bool


def headings(turn: Turn) -> Iterator[Heading]:
    """Yield the headings of a turn, sentences and labels of list items in bold type, and introductions of lists."""
    fenced = False
    lines = [line for line in turn.text[:TEXT_MAX].split("\n") if line.strip()]
    for number, line in enumerate(lines):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            item = _ITEM.match(line)
            content = line[item.end() if item else 0 :].strip()
            if heading := _HEADING.match(line):
                yield Heading(heading.group(1), number == 0)
            elif bold := _BOLD_SENTENCE.match(content) if item is None else _BOLD_LABEL.match(content):
                yield Heading(bold.group(), number == 0)
            elif content.endswith((":", ":**")):
                start, end = list(sentences(content))[-1]
                yield Heading(content[start:end], number == 0)


def _is_table_header(lines: list[str], number: int) -> bool:
    following = lines[number + 1] if number + 1 < len(lines) else ""
    return "|" in following and "-" in following and _RULE_LINE.match(following) is not None


def _from_line(turn: Turn, line: str, outline: _Outline, *, header: bool) -> Iterator[Statement]:
    if heading := _HEADING.match(line):
        outline.enter(-10 + line.index("#") + line.count("#", 0, heading.start(1)), heading.group(1))
    elif line.lstrip().startswith("|"):
        if not header:
            yield from _row(turn, line, outline)
    elif item := _ITEM.match(line):
        yield from _item(turn, line, item, outline)
    elif (
        _BOLD_LINE.match(line)
        and len(strip_markdown(line)) <= 80
        and (line.rstrip(" *").endswith(":") or _is_label(line))
    ):
        outline.enter(_BOLD, line)
    elif not _DRAWING.search(line):
        yield from _paragraph(turn, line, outline)


def _row(turn: Turn, line: str, outline: _Outline) -> Iterator[Statement]:
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    cells_with_text = [cell for cell in cells if cell]
    if len(cells_with_text) >= 2:
        text = f"{strip_markdown(cells_with_text[0])}: {strip_markdown('; '.join(cells_with_text[1:]))}"
        yield _statement(turn, outline.subject(text) + text, line.strip(), listed=True)


def _item(turn: Turn, line: str, item: re.Match[str], outline: _Outline) -> Iterator[Statement]:
    depth = len(item.group(1).expandtabs(4))
    content = line[item.end() :].rstrip()
    outline.leave(depth)
    if not (content.endswith(":") or _is_label(content)):
        text = strip_markdown(content)
        yield _statement(turn, outline.subject(text) + text, content, listed=True)
    outline.enter(depth, content)


def _is_label(content: str) -> bool:
    """Return whether a line only labels the lines below it."""
    beside = NAMED.sub("", re.sub(r"\([^()]*\)", "", content.replace("*", "")))
    return len(content) <= LABEL_MAX and not beside.strip(" :`,.")


def _paragraph(turn: Turn, line: str, outline: _Outline) -> Iterator[Statement]:
    outline.leave_list()
    spans = _joined(line, sentences(line))
    labelled = _LABELLED.match(line) is not None
    for start, end in spans:
        raw = line[start:end]
        if raw.endswith((":", ":**")):
            cells_with_text = list(_introduction(turn, raw))
            outline.enter(_INTRODUCTION, raw if len(raw) <= LABEL_MAX and not cells_with_text else "")
            yield from cells_with_text
            return
        text = strip_markdown(raw)
        subject = outline.subject(text) if len(outline.labels) and _CODE_FILE.search(outline.labels[-1][1]) else ""
        yield _statement(turn, subject + text, raw, listed=labelled)


def _introduction(turn: Turn, raw: str) -> Iterator[Statement]:
    """Yield the statement of a line that introduces a list: `Updated the theme with these colors:`."""
    text = _LEADING_ON.sub("", strip_markdown(raw).rstrip(" :"))
    if len(text) > _INTRODUCTION_MIN and CHANGED.match(text):
        yield _statement(turn, text, raw.rstrip(" :*"), listed=False)


def _joined(line: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Append each sentence that depends on the previous sentence (`This means …`) to that sentence."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        depends = needs_context(line[start:end]) or _CONTINUES.match(line[start:end])
        if joined and depends and end - joined[-1][0] <= STATEMENT_MAX:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((start, end))
    return joined


def with_valid_quotes(cells_with_text: Iterable[Statement], turn: Turn) -> Iterator[Statement]:
    """Yield the statements with quotes that occur in the turn.

    Statements come from a cleaned copy of the turn. Therefore, words are removed from the end of a quote until it
    occurs in the original turn. Statements without a remaining quote are omitted.
    """
    for statement in cells_with_text:
        quote = statement.quote
        while quote and quote not in turn.text:
            quote = quote.rpartition(" ")[0]
        if quote:
            yield replace(statement, quote=quote)


def _statement(turn: Turn, text: str, raw: str, *, listed: bool) -> Statement:
    shown = text if len(text) <= STATEMENT_MAX else truncate(text, STATEMENT_MAX - len(CUT)) + CUT
    return Statement(shown, quote_of(raw), raw, turn.line, turn.speaker, listed)


def quote_of(raw: str) -> str:
    """Return the first words of a passage verbatim."""
    if len(raw) <= QUOTE_MAX:
        return raw.strip()
    return raw[
        : raw.rfind(" ", QUOTE_MAX // 2, QUOTE_MAX) if " " in raw[QUOTE_MAX // 2 : QUOTE_MAX] else QUOTE_MAX
    ].strip()


_BOOKKEEPING = phrases("filler.bookkeeping")
"""Pattern for the state of files, commits and changelogs, which git records better."""
_LABEL = phrases("filler.label")
"""Pattern for the beginning of labels and import lines, which only repeat what the files show."""
_PROGRESS = phrases("filler.progress")
"""Pattern for reports of an agent about its own progress."""
_UNSURE_START = phrases("filler.unsure_start")
_UNSURE = phrases("filler.unsure")
_DIAGNOSIS = phrases("filler.diagnosis")
"""Pattern for statements that name a cause. A cause in the conclusion replaces causes that were named while working."""


_PITFALL = phrases("filler.pitfall")
"""Pattern for statements that warn, or state a rule."""


_POSSIBILITIES = phrases("filler.possibilities")
"""Pattern for the introduction of a list whose items exclude each other."""


def is_diagnosis(statement: Statement) -> bool:
    """Return whether a statement, or the heading above it, names a cause."""
    return _DIAGNOSIS.search(f"{statement.heading}: {statement.text}") is not None


def names_cause(text: str) -> bool:
    """Return whether a sentence itself names a cause."""
    return _DIAGNOSIS.search(text) is not None


def is_pitfall(statement: Statement) -> bool:
    """Return whether a statement warns of a pitfall or states a rule of the project."""
    return _PITFALL.search(f"{statement.heading}: {statement.raw}") is not None


def is_filler(statement: Statement) -> bool:
    """Return whether a statement reports only files, commits, imports, the progress of an agent, or a possibility."""
    text = statement.text
    if _POSSIBILITIES.search(statement.topic):
        return True
    return any(pattern.search(text) for pattern in (_BOOKKEEPING, _LABEL, _PROGRESS))


def is_guess(statement: Statement) -> bool:
    """Return whether a remark made while working is a guess, or not worth keeping.

    A remark is not worth keeping if it is about the agent's own mistake or the working tree, or if it depends on the
    sentence before it.
    """
    text = statement.text
    if needs_context(statement.raw) or HOUSEKEEPING.search(statement.raw):
        return True
    return _UNSURE_START.match(text) is not None or _UNSURE.search(text) is not None
