"""Claims: sentences of an archived entry, each with the transcript lines that support it."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from ...core.observation import Evidence
from ...core.origin import Origin
from ...core.query import HitKind
from ...core.results import Detail
from ...core.sentences import sentences, strip_markdown

_QUOTED: Final = re.compile(r"“[^”]{2,}”")
_LEAD: Final = re.compile(r"\A(?:The plan begins|The prompt begins): ")
_CHANGED: Final = re.compile(r"(?<=”) Changed [\w./-]+.*\Z")
_ASKED: Final = ("Asked: ", "Asked while ", "Task given: ")
_MARK: Final = re.compile(r'\A\s*(?:[-*+•]|\d{1,2}[.)]|#{1,6}|>|\||"{3})\s*')
_LETTER: Final = re.compile(r"\A[A-Z][.)] ")
FILE_NAME: Final = re.compile(r"\A[\w./-]+\.\w{1,5}: ")
"""Pattern for the name of a changed file at the start of a fact, as in `src/clock.py: `."""
_DULL: Final = re.compile(
    r"\A(?:Plan(?: proposed)?: |Changed [\w./-]+|Edited [\w./-]+$|Committed: |Edit: |Tests: "
    r"|All (?:\d+ )?(?:tests|checks)\b)"
)
_ROW: Final = re.compile(r"\A[^:;]{1,60}:(?: [^;]{1,24};){2,} [^;]{1,24}\Z")
"""Pattern for a row of a table. Its short cells are not understandable without the headings of the columns."""
_INTENTION: Final = re.compile(
    r"""\A[“"]?
    (?:(?:ok|okay|now|next|first|then|so|great|good|perfect|sure|yes|done|actually|also|and|but)\b[,.!:;—–-]*\s*)*
    (?: (?:i|we)(?:['’]ll|\s(?:will|should|need\sto|want\sto|plan\sto))\b
    | (?:i['’]m|i\sam|we['’]re)\s(?:now\s)?\w+ing\b | let\s(?:me|us)\b | let['’]s\b | (?:going|about)\sto\b )
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for the start of a sentence in which an agent announces an action. A later sentence reports its result."""
_QUESTION: Final = ("?", "?”", '?"')
_WRAPPED: Final = re.compile(r"(?m)^(?!\s*#)(.*\S)\n(?=[ \t]*[^\s\d#>|`~*+•-])")
"""Line of a document that continues in the next line. Headings, lists, tables and code blocks do not continue."""
_SHORTEST: Final = 20
"""Minimum characters of a claim."""


class Claim(NamedTuple):
    """Sentence of an archived entry, and the transcript lines that support it."""

    text: str
    start_line: int
    end_line: int

    @property
    def is_request(self) -> bool:
        """True if the sentence repeats a prompt of the user. Prompts contain questions, not answers."""
        return self.text.startswith(_ASKED)


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
    distinct = dict.fromkeys([*filter(_is_complete, facts), *sentences_of(text)])
    if observation.origin != Origin.HUMAN or detail.kind == HitKind.EXCHANGE:
        distinct = dict.fromkeys(filter(is_statement, distinct))
    return [Claim(text, *lines_of(text, observation.evidence, detail)) for text in distinct]


def is_statement(text: str) -> bool:
    """Return False if an agent's sentence announces an action or asks the user a question, or else True."""
    return text.startswith(_ASKED) or not (_INTENTION.match(text) or text.endswith(_QUESTION))


def sentences_of(text: str) -> Iterator[str]:
    """Yield the complete sentences of a Markdown text, without code blocks."""
    fenced = False
    for row in text.split("\n"):
        if row.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            yield from filter(_is_complete, _sentences(row))


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


def _sentences(row: str) -> Iterator[str]:
    """Remove the markup of a line, and yield its sentences. A quotation is never split."""
    plain = strip_markdown(_MARK.sub("", row))
    # Only the end of a quotation can end a sentence.
    masked = _QUOTED.sub(lambda found: "“" + "x" * (len(found[0]) - 3) + found[0][-2:], plain)
    for start, end in sentences(masked):
        yield _CHANGED.sub("", _LEAD.sub("", plain[start:end]))


def _is_complete(text: str) -> bool:
    return len(text) >= _SHORTEST and not text.endswith((":", "…")) and not (_DULL.match(text) or _ROW.match(text))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
