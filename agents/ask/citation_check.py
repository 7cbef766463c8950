"""Check of citations: cited IDs and transcript lines must exist, and claims without a source are marked.

A claim is a sentence of an archived entry, with the transcript lines that support it. In a model's answer, IDs that
no tool returned to the model are marked too.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from ...core.agent_names import AGENTS
from ...core.conversation import Origin
from ...core.errors import PalaverError
from ...core.ids import canonical
from ...core.observation import Evidence
from ...core.query import IDS_MAX, HitKind
from ...core.results import CitedSource, Detail
from ...core.text import ASKED, is_complete_sentence, is_statement, sentences, sentences_of, strip_markdown

if TYPE_CHECKING:
    from ...search.archive_search import ArchiveSearch

UNVERIFIED: Final = "[not in the archive]"
"""Mark after a citation of an item or of lines that the archive does not contain."""
PUBLIC_ID: Final = r"(?<![\w/-])(?i:(?:obs|ex|chunk)-\d+|(?:mem|chunk)_\d+)(?!\w)"
"""Pattern of an ID in a text, such as `obs-7` or `mem_12`, in upper or lower case."""
_CITATION: Final = re.compile(
    rf"(?P<id>{PUBLIC_ID})"
    r"|(?<![\w/.-])(?P<path>[\w.@+~-]+(?:/[^\s`:\[\](),;]+)+|[\w-]{4,}):(?P<first>\d+)(?:-(?P<last>\d+))?(?![\w.:])"
)
_PAIR: Final = re.compile(r"`?,\s*`?")
"""Pattern for the text between an ID and its lines, as in `[obs-7, 0b6f:12]`."""
_SCHEME: Final = re.compile(r"\w+://\S*")


class CheckedText(Struct, frozen=True):
    """Text with a mark after each citation that is not in the archive, and the distinct citations in order."""

    text: str
    sources: tuple[CitedSource, ...]

    @property
    def missing(self) -> tuple[CitedSource, ...]:
        """Citations that are not in the archive."""
        return tuple(source for source in self.sources if not source.exists)


class CitationChecker:
    """Checker of cited IDs (`obs-7`) and lines (`claude-code/x.jsonl:12-14`, or `0b6f:12` with a session ID)."""

    def __init__(self, archive: "ArchiveSearch") -> None:
        self._archive = archive

    def check(self, text: str) -> CheckedText:
        """Return the text with a mark after each citation that is not in the archive.

        In a pair such as `[obs-7, 0b6f:12]`, the lines must be from the same conversation as `obs-7`.
        """
        found = list(self._citations(text))
        details = self._details([each["id"] for each in found if each["id"]])
        marked, end = list[str](), 0
        sources: dict[str, CitedSource] = {}
        entry: CitedSource | None = None
        for each in found:
            source = _of_id(each["id"], details) if each["id"] else self._of_lines(each)
            if source is None:
                continue
            if not each["id"] and entry is not None and _PAIR.fullmatch(text, end, each.start()):
                source = replace(source, exists=source.exists and source.session_id == entry.session_id)
            entry = source if each["id"] and source.path else None
            sources.setdefault(each[0], source)
            marked += [text[end : each.end()], "" if source.exists else f" {UNVERIFIED}"]
            end = each.end()
        return CheckedText("".join([*marked, text[end:]]), tuple(sources.values()))

    def _citations(self, text: str) -> Iterator[re.Match[str]]:
        addresses = [found.span() for found in _SCHEME.finditer(text)]
        for found in _CITATION.finditer(text):
            if not any(start <= found.start() < end for start, end in addresses):
                yield found

    def _details(self, wanted: Sequence[str]) -> dict[str, "Detail"]:
        distinct = list(dict.fromkeys(map(canonical, wanted)))
        found: dict[str, Detail] = {}
        for start in range(0, len(distinct), IDS_MAX):
            details, _ = self._archive.look_up(distinct[start : start + IDS_MAX])
            found |= {detail.id: detail for detail in details}
        return found

    def _of_lines(self, cited: re.Match[str]) -> CitedSource | None:
        """Return the cited lines, or None if the text is not a citation, such as `localhost:8080` or `store.py:12`."""
        path, first = cited["path"], int(cited["first"])
        last = int(cited["last"] or first)
        source = CitedSource(path=path, start_line=first, end_line=last, exists=False)
        is_transcript = path.partition("/")[0] in AGENTS or path.endswith(".jsonl")
        try:
            if not is_transcript:
                path, _ = self._archive.locate(path)
            if not 1 <= first <= last:
                return source
            excerpt = self._archive.read(path, last, last)
        except PalaverError:
            return source if is_transcript else None
        return CitedSource("", excerpt.session_id, cited["path"], excerpt.path, first, last)


def _of_id(public: str, details: dict[str, "Detail"]) -> CitedSource:
    detail = details.get(canonical(public))
    if detail is None:
        return CitedSource(id=public, exists=False)
    return CitedSource(detail.id, detail.session_id, "", detail.path, detail.start_line, detail.end_line)


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


_LETTER: Final = re.compile(r"\A[A-Z][.)] ")
FILE_NAME: Final = re.compile(r"\A[\w./-]+\.\w{1,5}: ")
"""Pattern for the name of a changed file at the start of a fact, as in `src/clock.py: `."""
_WRAPPED: Final = re.compile(r"(?m)^(?!\s*#)(.*\S)\n(?=[ \t]*[^\s\d#>|`~*+•-])")
"""Line of a document that continues in the next line. Headings, lists, tables and code blocks do not continue."""


class Claim(NamedTuple):
    """Sentence of an archived entry, and the transcript lines that support it."""

    text: str
    start_line: int
    end_line: int

    @property
    def is_request(self) -> bool:
        """True if the sentence repeats a prompt of the user. Prompts contain questions, not answers."""
        return self.text.startswith(ASKED)


def claims_of(detail: Detail) -> list[Claim]:
    """Return the distinct sentences of an entry's facts and narrative.

    Notes about the work itself, such as `Committed: …` or `All tests pass`, are left out. Intentions and questions of
    an agent are also left out.
    """
    observation = detail.observation
    # The facts of a memory are its statistics, and those of a document are its metadata.
    stated = () if detail.kind in {HitKind.MEMORY, HitKind.DOCUMENT} else observation.facts
    facts = (_LETTER.sub("", strip_markdown(fact)) for fact in stated)
    text = observation.narrative
    if detail.kind == HitKind.DOCUMENT:
        text = _WRAPPED.sub(r"\1 ", text)
    distinct = dict.fromkeys([*filter(is_complete_sentence, facts), *sentences_of(text)])
    if observation.origin != Origin.HUMAN or detail.kind == HitKind.EXCHANGE:
        distinct = dict.fromkeys(filter(is_statement, distinct))
    return [Claim(text, *lines_of(text, observation.evidence, detail)) for text in distinct]


def lines_of(text: str, evidence: Sequence[Evidence], detail: Detail) -> tuple[int, int]:
    """Return the lines of the first evidence whose quote contains the text or is part of the text.

    Without such evidence, return all lines of the entry.
    """
    wanted = _plain(FILE_NAME.sub("", text))
    for proof in evidence:
        quote = _plain(strip_markdown(proof.quote))
        if quote and (quote in wanted or wanted in quote):
            return proof.start_line, proof.end_line
    return detail.start_line, detail.end_line


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
