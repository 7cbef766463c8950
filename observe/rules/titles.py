"""Title of an outcome: the candidate line with the highest score.

Candidates are the lines of an exchange that could state its result: commit subjects, plan headings, sentences of the
answer, findings, the request and the title of the session. The score is a sum of weights, one for each property of a
line. The weights were fitted to ratings by two readers (`python -m bench.titles --fit`).
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.sentences import headline, strip_markdown
from .answer_headings import VERDICT, stated_headings
from .exchange_analysis import MINOR, ExchangeAnalysis
from .phrase_patterns import at_start
from .salience import CAUSE, CHANGED, HOUSEKEEPING, NAMED, is_noise, is_status, needs_context, salience
from .statements import Statement
from .user_request import LOOK, is_specific

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
    |but\ (?=there)""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for introductory words that say nothing about the result, such as `Worth noting: `."""
_COMMITTED: Final = re.compile(
    r",?\s(?:and\s)?(?:\(|(?:amended\sinto|committed\s(?:as|in)|pushed\sas|in|as)\s\(?(?:commit\s)?)[0-9a-f]{7,40}\)?$"
)
"""Pattern for the hash of a commit at the end of a sentence."""
_IN_FILE: Final = re.compile(r"[\w@./-]+\.\w{1,5}(?: \([^()]{1,40}\))?\s*(?::|—|–|-)\s+")
_DEPENDENT: Final = at_start(
    r"""
    otherwise | with | but | so | because | also | then | good | when | scope | done | before: | after: | exactly
    | in that case | there (?:is|are) also | the (?:prior|previous|remaining|other|same|most impactful|rest|above
    |former|latter) | verified | confirmed | checked
    """
)
"""Pattern for the beginning of a sentence that continues the previous one or describes circumstances."""
_ASIDE: Final = at_start(
    r"""
    otherwise | otherwise, | you | if | when you | once you | since (?:both|you|we|this|the change) | i did(?:n['’]t
    | not) | i (?:haven['’]t|have not) | ready | next up | note | one (?:note|caveat|thing) | the most impactful | then
    | \S+(?: \S+)? works because | compare | run | try | restart | i (?:bet|think|guess|suspect) | maybe | perhaps | probably
    """
)
"""Pattern for the beginning of a sentence that is not part of the result."""
_NO_SUBJECT: Final = at_start(
    r"""
    (?:in\s[^,]{3,60},\s)?(?:it|this|that|these|those|they|here)\b(?!\s(?:repo(?:sitory)?|project|package)\b)
    | as (?:you can see|requested|expected|mentioned) | (?:our|your|both|the (?:file|task|change|fix|issue|result)s?)\b
    | [^,]{0,20}\balso\b
    """
)
"""Pattern for the beginning of a sentence whose subject is named only elsewhere in the conversation."""
GENERIC: Final = re.compile(
    r"""\b(?:the|all)\s(?:\w+[ -]){0,2}(?:tasks?|changes|fix(?:es)?|requirements|feedback|findings
    |learnings|plan|request)\b(?:\sare\b|\sin\b|$)
    |\b(?:insights|learnings|improvements|code\sreview|review\s(?:comments|feedback|findings))$
    |\bissues\sfrom\b|^checked\s(?:all|the)\b|^(?:updated?|add(?:ed)?)\s(?:the\s)?(?:docs?|documentation|tests?|todo)$""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for words of a title that names no specific result."""
_REMARK: Final = at_start(
    r"""
    (?:also )?(?:worth noting | worth documenting | note | relevant | related) | left alone | (?:one|a) (?:\w+ ){0,2}(?:note
    |caveat) | caveat | for (?:future )?reference | by the way | fyi | heads[- ]up | loose ends? | skipped | side note
    | false alarm
    """
)
"""Pattern for the beginning of a remark beside the result."""
_SUBORDINATE: Final = at_start("when | if | since | because | as | while | although | once | after | before")
_QUESTION: Final = at_start(
    r"""
    (?:what | why | which | who | where | when | how | is | are | was | do | does | did | has | have) (?!to\b)
    """
)
_REVIEW: Final = at_start(r"(?:code |security )?(?:review | audit | assess | security) | scope")
_OVERVIEW: Final = re.compile(r"\W*(?:overview|summary|scope|context|background|purpose|what (?:this|it|the|is|changed))", re.I)
"""Pattern for headings above the description of reviewed code."""
_DESCRIBES: Final = at_start("adds? | implements? | introduces? | backed by | this (?:pr|branch|commit|change) | reviewed")
"""Pattern for the beginning of a sentence that describes reviewed code."""
_ACTIVITY: Final = at_start(
    r"""
    ran | checked | reviewed | verified | confirmed | reproduced | inspected | examined | looked | searched | tested
    | traced | source of truth | sources? | suggested | to answer | (?:the |an? )?(?:\S+ ){0,3}(?:sub-?)?agents?
    (?:was|is|has|launched|dispatched|counted|found|reported|returned) | non-issues? | alternatives?
    | the alternative | one caveat
    """
)
"""Pattern for the beginning of a sentence about the way to the result."""
_HEDGED: Final = re.compile(
    r"\b(?:likely|probably|maybe|perhaps|presumably|may|might|could|appears?|seems?|suspect|looks like)\b",
    re.IGNORECASE,
)
_RESULT_HEADING: Final = re.compile(
    r"""[\W\d]*(?:the\s)?(?:actual\s|real\s|short\s|key\s)?(?:root\ cause|cause|fix|verdict|conclusion|answer|result
    |outcome|problem|issue|bug|decision|recommendation|bottom\ line|tl;?dr|diagnosis|finding|why
    |what\ (?:broke|happened|went\ wrong|i\ found))""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for headings above the result of an answer."""
_RECOMMENDATION: Final = at_start(
    r"""
    (?:i|we)(?:['’]d|\swould)? (?:still )?(?:recommend|suggest|lean|go with|pick|choose) | (?:my )?recommendation
    | (?:the )?(?:best|right|simplest|cleanest|safest) (?:option|choice|approach|fix|way) (?:here )?is | recommended
    """
)
_YES_NO: Final = re.compile(r"\W*(?:yes|no|correct|confirmed)\b(?=[\W])(?!\ (?:need|problem|change))", re.IGNORECASE)
_FIRST_PERSON: Final = re.compile(r"\b(?:i|i['’]\w+|we|my|me|you|your)\b", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"https?://\S+")
_WORD: Final = re.compile(r"\w{4,}")
_SENTENCES, _HEADINGS, _FINDINGS, _REQUESTS = 8, 3, 3, 4
"""Maximum candidates from the answer, its headings, the findings and the request."""
_LENGTH: Final = ((30, "short"), (60, "medium"), (90, "long"))
_DETAILED: Final = 125
"""Minimum characters of a detailed sentence, with its Markdown."""

WEIGHTS: Final = {
    "commit": 0.94,
    "plan to carry out": 2.00,
    "telling commit": 0.69,
    "very long": 0.54,
    "first of the answer": 0.30,
    "recommendation": 0.50,
    "on the request": 0.38,
    "result heading": 0.30,
    "yes or no": 0.20,
    "much on the request": 0.36,
    "minor commit": 0.25,
    "change": 0.22,
    "detailed": 0.20,
    "answer to a question": 0.19,
    "two names": 0.18,
    "cause": 0.17,
    "long": 0.12,
    "medium": -0.10,
    "question": -0.11,
    "session": -0.20,
    "hedged": -0.20,
    "later in the answer": -0.23,
    "dependent": -0.24,
    "activity": -0.30,
    "cut in a quotation": -0.30,
    "aside": -0.36,
    "unspecific": -0.37,
    "inspection": -0.40,
    "listed": -0.46,
    "no subject": -0.50,
    "first person": -0.51,
    "short": -0.56,
    "status": -0.59,
    "generic": -0.80,
    "finding": -0.86,
    "heading": 0.20,
    "heading of the answer": 0.40,
    "finding of a review": 1.10,
    "verdict": 0.60,
    "incomplete": -0.50,
    "bare question": -0.50,
    "remark": -0.60,
    "description": -0.80,
}
"""Weight of each property of a candidate.

Fitted weights below 0.1 are omitted. Some weights were increased after trials: those of plan headings, generic titles,
titles without a subject, and titles truncated within a quotation.
"""


class Source(StrEnum):
    """Part of an exchange that a candidate comes from."""

    COMMIT = "commit"
    PLAN = "plan"
    ANSWER = "answer"
    HEADING = "heading"
    FINDING = "finding"
    REQUEST = "request"
    SESSION = "session"


_STATED: Final = frozenset({Source.ANSWER, Source.FINDING})


class TitleCandidate(Struct, frozen=True):
    """Line that could be the title. `place` is its position among the candidates of its source. `raw` is Markdown."""

    text: str
    source: Source
    place: int
    raw: str
    listed: bool = False
    heading: str = ""


def bottom_line(text: str) -> str:
    """Strip introductions such as `The fix is simple: `, `I have `, `Worth noting: ` or a file name."""
    for pattern in (_IN_FILE, _BOTTOM_LINE, _LEAD_IN, _BY_ME):
        introduction = pattern.match(text)
        if introduction and len(text) - introduction.end() > 20:
            text = text[introduction.end() :]
    return _COMMITTED.sub("", text.rstrip("."))


def is_aside(statement: Statement) -> bool:
    """Return whether a sentence is about routine work, or is advice or a question."""
    return "?" in statement.text or (HOUSEKEEPING.search(statement.raw) or _ASIDE.match(statement.text)) is not None


def title_candidates(analysis: ExchangeAnalysis, session_title: str = "") -> list[TitleCandidate]:
    """Return the possible titles of an exchange, without duplicates."""
    found: dict[str, TitleCandidate] = {}
    for each in _candidates(analysis, session_title):
        if len(each.text) > 8:
            found.setdefault(each.text, each)
    return list(found.values())


def best_title(analysis: ExchangeAnalysis, session_title: str = "") -> TitleCandidate | None:
    """Return the candidate with the highest score, or None without candidates. On a tie, the first one wins."""
    return max(title_candidates(analysis, session_title), key=lambda each: score(each, analysis), default=None)


def score(candidate: TitleCandidate, analysis: ExchangeAnalysis) -> float:
    """Return the sum of the weights of a candidate's properties."""
    return sum(WEIGHTS.get(name, 0.0) for name in features(candidate, analysis))


def _candidates(analysis: ExchangeAnalysis, session_title: str) -> Iterator[TitleCandidate]:
    for place, commit in enumerate(reversed(analysis.commits)):
        yield TitleCandidate(headline(commit.subject), Source.COMMIT, place, commit.subject)
    if analysis.plan and analysis.plan.title:
        yield TitleCandidate(headline(analysis.plan.title), Source.PLAN, 0, analysis.plan.title)
    yield from _sentences(Source.ANSWER, _under_headings(analysis.conclusion), _SENTENCES)
    for place, (text, heading) in enumerate(stated_headings(analysis.conclusion)[:_HEADINGS]):
        yield TitleCandidate(headline(bottom_line(text)), Source.HEADING, place, heading)
    ranked = sorted(analysis.findings, key=lambda each: -salience(each.raw))
    yield from _sentences(Source.FINDING, [*ranked[: _FINDINGS - 1], *analysis.findings[-1:]], _FINDINGS)
    request = analysis.request
    if request.title:
        yield TitleCandidate(headline(request.title), Source.REQUEST, 0, request.title)
    for place, each in enumerate(request.statements[:_REQUESTS], start=1):
        yield TitleCandidate(headline(each.text), Source.REQUEST, place, each.raw)
    if session_title:
        yield TitleCandidate(headline(session_title), Source.SESSION, 0, session_title)


def _under_headings(answer: Sequence[Statement]) -> list[Statement]:
    """Return the statements of an answer. Only the first one below a heading keeps the heading."""
    above = ["", *(each.heading for each in answer)]
    return [
        replace(each, heading="") if each.heading == heading else each
        for each, heading in zip(answer, above, strict=False)
    ]


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


def _candidate(source: Source, statement: Statement, place: int) -> TitleCandidate:
    return TitleCandidate(
        headline(bottom_line(statement.text)), source, place, statement.raw, statement.listed, statement.heading
    )


def features(candidate: TitleCandidate, analysis: ExchangeAnalysis) -> Iterator[str]:
    """Yield the properties that apply to a candidate, by their names in `WEIGHTS`."""
    text, source = candidate.text, candidate.source
    shared = 0 if source is Source.REQUEST else _shared(text, analysis.request.text)
    yield source
    yield from _place(candidate, analysis)
    yield next((name for most, name in _LENGTH if len(text) < most), "very long")
    for name, holds in (
        ("change", CHANGED.match(text)),
        ("cause", CAUSE.search(candidate.raw)),
        ("two names", len(NAMED.findall(candidate.raw)) > 1),
        ("question", "?" in candidate.raw),
        ("dependent", needs_context(text) or _DEPENDENT.match(text)),
        ("aside", _ASIDE.match(text) or HOUSEKEEPING.search(candidate.raw)),
        ("first person", _FIRST_PERSON.search(text)),
        ("status", is_status(text) or is_noise(text)),
        ("unspecific", not is_specific(_ADDRESS.sub("", text))),
        ("detailed", source in _STATED and len(candidate.raw) >= _DETAILED),
        ("no subject", _NO_SUBJECT.match(text)),
        ("result heading", _RESULT_HEADING.match(candidate.heading or candidate.raw * (source is Source.HEADING))),
        ("recommendation", source is Source.ANSWER and _RECOMMENDATION.match(strip_markdown(candidate.raw))),
        ("yes or no", source is Source.ANSWER and _YES_NO.match(candidate.raw)),
        ("activity", _ACTIVITY.match(text)),
        ("hedged", _HEDGED.search(candidate.raw)),
        ("generic", GENERIC.search(text)),
        ("incomplete", _SUBORDINATE.match(text) and text[-20:] not in strip_markdown(candidate.raw)[-30:]),
        ("bare question", source in {Source.REQUEST, Source.SESSION} and _QUESTION.match(text)),
        ("remark", source is Source.ANSWER and _REMARK.match(strip_markdown(candidate.raw))),
        ("description", source is Source.ANSWER and _describes(candidate, analysis)),
        ("cut in a quotation", text.count('"') % 2 or text.count("`") % 2 or text.count("“") != text.count("”")),
        ("listed", candidate.listed),
        ("on the request", shared > 1),
        ("much on the request", shared > 3),
    ):
        if holds:
            yield name


def _place(candidate: TitleCandidate, analysis: ExchangeAnalysis) -> Iterator[str]:
    """Yield the properties that depend on the source of a candidate."""
    request = analysis.request
    match candidate.source:
        case Source.COMMIT:
            yield "minor commit" if MINOR.match(candidate.text) else "telling commit"
        case Source.ANSWER:
            if candidate.place:
                yield "later in the answer"
            elif not candidate.listed:
                yield "first of the answer"
            if request.title.endswith("?") or request.looks:
                yield "answer to a question"
        case Source.HEADING:
            if candidate.raw == analysis.conclusion[0].heading:
                yield "heading of the answer"
            if VERDICT.match(candidate.raw):
                yield "verdict"
            if not candidate.place and _REVIEW.match(request.title):
                yield "finding of a review"
        case Source.REQUEST:
            if candidate.place == 0 and request.plan:
                yield "plan to carry out"
            elif LOOK.match(candidate.text):
                yield "inspection"
        case _:
            pass


def _describes(candidate: TitleCandidate, analysis: ExchangeAnalysis) -> bool:
    """Return whether a sentence of a review describes what was reviewed, instead of a finding or a verdict."""
    if not _REVIEW.match(analysis.request.title):
        return False
    return bool(_OVERVIEW.match(strip_markdown(candidate.heading)) or _DESCRIBES.match(candidate.text))


def _shared(text: str, other: str) -> int:
    """Return the number of words with four or more letters that both texts contain."""
    return len({word.lower() for word in _WORD.findall(text)} & {word.lower() for word in _WORD.findall(other)})
