"""Candidates for the title of an outcome: the lines of an exchange that could state its result.

They are commit subjects, plan headings, sentences and headings of the answer, findings, the request and the title of
the session.
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.sentences import headline
from .answer_headings import stated_headings, without_advice
from .exchange_analysis import ExchangeAnalysis
from .phrase_patterns import at_start
from .salience import HOUSEKEEPING, salience
from .statements import Heading, Statement

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
ASIDE: Final = at_start(
    r"""
    otherwise | otherwise, | you | if | when you | once you | since (?:both|you|we|this|the change) | i did(?:n['’]t
    | not) | i (?:haven['’]t|have not) | ready | next up | note | one (?:note|caveat|thing) | the most impactful | then
    | \S+(?: \S+)? works because | compare | run | try | restart | i (?:bet|think|guess|suspect) | maybe | perhaps
    | probably
    """
)
"""Pattern for the beginning of a sentence that is not part of the result."""
_SENTENCES, _HEADINGS, _FINDINGS, _REQUESTS = 8, 3, 3, 4
"""Maximum candidates from the answer, its headings, the findings and the request."""


class Source(StrEnum):
    """Part of an exchange that a candidate comes from."""

    COMMIT = "commit"
    PLAN = "plan"
    ANSWER = "answer"
    HEADING = "heading"
    FINDING = "finding"
    REQUEST = "request"
    SESSION = "session"


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


def title_candidates(analysis: ExchangeAnalysis, session_title: str = "") -> list[TitleCandidate]:
    """Return the possible titles of an exchange, without duplicates."""
    found: dict[str, TitleCandidate] = {}
    for each in _candidates(analysis, session_title):
        if len(each.text) > 8:
            found.setdefault(each.text, each)
    return list(found.values())


def _candidates(analysis: ExchangeAnalysis, session_title: str) -> Iterator[TitleCandidate]:
    for place, commit in enumerate(reversed(analysis.commits)):
        yield TitleCandidate(headline(commit.subject), Source.COMMIT, place, commit.subject)
    if analysis.plan and analysis.plan.title:
        yield TitleCandidate(headline(analysis.plan.title), Source.PLAN, 0, analysis.plan.title)
    above = ["", *(each.heading for each in analysis.conclusion)]
    opening = {each.raw for each, heading in zip(analysis.conclusion, above, strict=False) if each.heading != heading}
    for candidate in _sentences(Source.ANSWER, analysis.conclusion, _SENTENCES):
        yield replace(candidate, opens=candidate.raw in opening)
    for place, (text, heading) in enumerate(stated_headings(analysis.headings)[:_HEADINGS]):
        stated = headline(without_advice(bottom_line(text)))
        yield TitleCandidate(stated, Source.HEADING, place, heading.raw, leads=heading.leads)
    ranked = sorted(analysis.findings, key=lambda each: -salience(each.raw))
    yield from _sentences(Source.FINDING, [*ranked[: _FINDINGS - 1], *analysis.findings[-1:]], _FINDINGS)
    request = analysis.request
    if request.title:
        yield TitleCandidate(headline(request.title), Source.REQUEST, 0, request.title)
    for place, each in enumerate(request.statements[:_REQUESTS], start=1):
        yield TitleCandidate(headline(each.text), Source.REQUEST, place, each.raw)
    if session_title:
        yield TitleCandidate(headline(session_title), Source.SESSION, 0, session_title)


def _sentences(source: Source, statements: Sequence[Statement], most: int) -> Iterator[TitleCandidate]:
    """Yield up to `most` candidates.

    Half of them are the first statements, and the others are the most salient ones.
    """
    first = list(statements[: most // 2])
    others = sorted(statements[most // 2 :], key=lambda each: -salience(each.raw))[: most - len(first)]
    for place, each in enumerate([*first, *others]):
        yield _candidate(source, each, place)


def finding_candidate(statement: Statement) -> TitleCandidate:
    """Return a finding as the candidate for the title of a lesson."""
    return _candidate(Source.FINDING, statement, 0)


def section_candidates(statements: Sequence[Statement]) -> Iterator[tuple[TitleCandidate, Statement]]:
    """Yield the candidates for the title of a section, each with its statement.

    They are the heading, if it states a result, and all statements. A list item keeps a file name at its start. If the
    section consists only of list items, they are not marked as `listed`, which would lower their score.
    """
    heading = Heading(statements[0].heading, leads=False)
    for text, _ in stated_headings([heading]):
        yield TitleCandidate(headline(without_advice(bottom_line(text))), Source.HEADING, 0, heading.raw), statements[0]
    only_items = all(each.listed for each in statements)
    for place, each in enumerate(statements):
        if each.listed:
            text = headline(each.text)
            yield TitleCandidate(text, Source.ANSWER, place, each.raw, not only_items, each.heading, each.topic), each
        else:
            yield replace(_candidate(Source.ANSWER, each, place), opens=place == 0), each


def _candidate(source: Source, statement: Statement, place: int) -> TitleCandidate:
    text = headline(bottom_line(statement.text))
    return TitleCandidate(text, source, place, statement.raw, statement.listed, statement.heading, statement.topic)
