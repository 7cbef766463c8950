"""Candidates for the title of an observation: the sentences and headings of an answer that could state its result."""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from ...core.sentences import code_spans, headline
from .answer_headings import stated_headings, without_advice
from .exchange_analysis import ExchangeAnalysis
from .phrase_patterns import phrases
from .salience import HOUSEKEEPING, is_status, salience
from .statements import Statement

_BOTTOM_LINE: Final = re.compile(
    r"(?:the )?(?:actual |real )?(?:fix|root cause|cause|bug|problem|issue)\b(?:(?: is| was) (?:quite )?simple)?"
    r"(?:\s*(?::|is|was)\s+(?:that\s+)?|\s+(?=\w+s\b))",
    re.IGNORECASE,
)
_BY_ME: Final = re.compile(
    r"(?:i|we)(?: have|['’]ve)?\s+(?:also |now |simply |just |successfully )*"
    r"(?=\w+ed\b|made\b|rewrote\b|recommend\b|suggest\b)",
    re.IGNORECASE,
)
_LEAD_IN: Final = re.compile(
    r"""(?:regarding|as\ for|about)\b[^—–:]{3,70}(?:\s[—–-]\s|:\s)
    |(?:exactly\ )?as\s[^—–,:]{3,40}\s(?:diagnosed|expected|predicted|suspected|described)(?:\s[—–-]\s|[,:]\s)
    |as\ of\ \d[\d-]+,\s
    |(?:reproduced|confirmed|verified)\ (?:at|on|in)\ [\w.-]+:\s
    |(?:step|bug|fix|issue|finding|phase|change|option|part|lines?|\#)\ ?~?\d[\d–-]*(?:[:.]\s|\s[—–-]\s)
    |(?:it['’]s|it\ is|the\ error\ is)\ clear(?:\ that\b|:)\s
    |(?:for\ future\ reference|left\ alone(?:,\ deliberately)?|suggested\ (?:(?:commit\ )?message|fix)|worth\ noting
    |reasoning|additional\ improvement|important|note|key\ (?:point|insight|finding))(?::|\ is\ that)\s
    |(?:got\ it|done|fixed|correct|confirmed|implemented)\ [—–-]\s
    |(?:short\ answer|in\ short|tl;?dr|summary|verdict|conclusion|bottom\ line)\s?[:,—–-]\s
    |the\ important\ (?:distinction|thing|point)\ is\ that\s
    |that['’]s\ the\ fix(?:,\ \w+(?:\ \w+)?)?:\s
    |but\ (?=there)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for introductory words that say nothing about the result, such as `Worth noting: `."""
_COMMITTED: Final = re.compile(
    r",?\s(?:and\s)?(?:\(|(?:amended\sinto|committed\s(?:as|in)|pushed\sas|in|as)\s\(?(?:commit\s)?)[0-9a-f]{7,40}\)?"
    r"(?:,?\s(?:and\s)?(?:all|the)\s(?:tests|suites|checks)\s(?:are\s)?(?:green|pass(?:ing)?))?\.?$"
)
"""Pattern for the hash of a commit at the end of a sentence, and for the result of checks after it."""
_IN_FILE: Final = re.compile(r"[\w@./-]+\.\w{1,5}(?: \([^()]{1,40}\))?\s*(?::|—|–|-)\s+")
ASIDE: Final = phrases("title_candidates.aside")
"""Pattern for the beginning of a sentence that is not part of the result."""
_SENTENCES, _HEADINGS = 8, 3
"""Maximum candidates from the sentences of an answer, and from its headings."""


class Source(StrEnum):
    """Part of an answer that a candidate comes from."""

    ANSWER = "answer"
    HEADING = "heading"


class TitleCandidate(Struct, frozen=True):
    """Line that could be the title. `place` is its position among the candidates of its source. `raw` is Markdown."""

    text: str
    source: Source
    place: int
    raw: str
    listed: bool = False
    heading: str = ""
    topic: str = ""
    opens: bool = False
    """True for the first sentence below its heading."""
    leads: bool = False
    """True for a heading that begins the answer."""


def bottom_line(text: str) -> str:
    """Strip introductions such as `The fix is simple: `, `I have `, `Worth noting: ` or a file name."""
    for pattern in (_IN_FILE, _BOTTOM_LINE, _LEAD_IN, _BY_ME):
        introduction = pattern.match(text)
        if introduction and len(text) - introduction.end() > 20:
            text = text[introduction.end() :]
    return _COMMITTED.sub("", text)


def is_aside(statement: Statement) -> bool:
    """Return whether a sentence is a question, gives advice, or is about routine work."""
    return "?" in statement.text or (HOUSEKEEPING.search(statement.raw) or ASIDE.match(statement.text)) is not None


def title_candidates(analysis: ExchangeAnalysis) -> list[TitleCandidate]:
    """Return the possible titles of an exchange, without duplicates."""
    candidates: dict[str, TitleCandidate] = {}
    for candidate in _candidates(analysis):
        if len(candidate.text) > 8 and not (candidate.text.startswith("<") or is_status(candidate.text)):
            candidates.setdefault(candidate.text, candidate)
    return list(candidates.values())


def _candidates(analysis: ExchangeAnalysis) -> Iterator[TitleCandidate]:
    above = ["", *(each.heading for each in analysis.conclusion)]
    opening = {each.raw for each, heading in zip(analysis.conclusion, above, strict=False) if each.heading != heading}
    for place, each in enumerate(_telling(analysis.conclusion)):
        text = headline(bottom_line(each.text), code=code_spans(each.raw))
        opens = each.raw in opening
        yield TitleCandidate(text, Source.ANSWER, place, each.raw, each.listed, each.heading, each.topic, opens)
    for place, (text, heading) in enumerate(stated_headings(analysis.headings)[:_HEADINGS]):
        stated = headline(without_advice(bottom_line(text)), code=code_spans(heading.raw))
        yield TitleCandidate(stated, Source.HEADING, place, heading.raw, leads=heading.leads)


def _telling(statements: Sequence[Statement]) -> list[Statement]:
    """Return the first statements, and then the most salient of the others."""
    first = list(statements[: _SENTENCES // 2])
    return first + sorted(statements[len(first) :], key=lambda each: -salience(each.raw))[: _SENTENCES - len(first)]
