"""Titles of observations: the line of an answer that best states its result.

Candidates are the sentences and headings of an answer that could state its result. The score of a line is a sum of
weights, one for each of its properties. The weights were fitted to ratings by two readers (`python -m bench.titles
--fit`).
"""

import re
from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

from ...core.text import TITLE_MAX, code_spans, headline, is_open_ended, shorten, strip_markdown
from .classification import RESULT_WORDS, VERDICT, is_beside, stated_headings, without_advice
from .exchange_analysis import ExchangeAnalysis
from .salience import (
    CAUSE,
    CHANGED,
    HOUSEKEEPING,
    NAMED,
    is_status,
    needs_context,
    phrases,
    regex,
    salience,
    weight_table,
    word_set,
)
from .statements import Statement
from .user_request import is_specific

_BOTTOM_LINE: Final = regex("titles.bottom_line")
_BY_ME: Final = regex("titles.by_me")
_LEAD_IN: Final = regex("titles.lead_in")
"""Pattern for introductory words that say nothing about the result, such as `Worth noting: `."""
_COMMITTED: Final = regex("titles.committed")
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


_DEPENDENT: Final = phrases("titles.dependent")
"""Pattern for the beginning of a sentence that continues the previous one or describes circumstances."""
_NO_SUBJECT: Final = phrases("titles.no_subject")
"""Pattern for the beginning of a sentence whose subject is named only elsewhere in the conversation."""
UNNAMED: Final = regex("titles.unnamed")
"""Pattern for the beginning of a sentence that reports work without naming it: `Fixed and verified in the build`."""
GENERIC: Final = regex("titles.generic")
"""Pattern for words of a title that names no specific result."""
_REMARK: Final = phrases("titles.remark")
"""Pattern for the beginning of a remark that is not part of the result."""
_SUBORDINATE: Final = phrases("titles.subordinate")
_UNCHANGED: Final = phrases("titles.unchanged")
_DONE: Final = re.compile(r"\W*(?:done|fixed|implemented|shipped)\s[—–-]\s", re.IGNORECASE)
_HASH: Final = re.compile(r"\b(?=\w*\d)[0-9a-f]{7,40}\b")
_INTENDED: Final = phrases("titles.intended")
REVIEW: Final = phrases("titles.review")
"""Pattern for a request to review something."""
_OVERVIEW: Final = regex("titles.overview")
"""Pattern for headings above the description of reviewed code."""
_DESCRIBES: Final = phrases("titles.describes")
"""Pattern for the beginning of a sentence that describes reviewed code."""
_ACTIVITY: Final = phrases("titles.activity")
"""Pattern for the beginning of a sentence about the work that led to the result."""
_HEDGED: Final = regex("titles.hedged")
_RESULT_HEADING: Final = re.compile(
    rf"""[\W\d]*(?:the\s)?(?:actual\s|real\s|short\s|key\s)?(?:{RESULT_WORDS}|fix|outcome|problem|issue|bug
    |decision|recommendation|bottom\ line|tl;?dr|diagnosis|finding|why
    |what\ (?:broke|happened|went\ wrong|i\ found))""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for headings above the result of an answer."""
_RESULT_LABEL: Final = re.compile(
    rf"""\*\*(?:the\s)?(?:{RESULT_WORDS}|fix|outcome|problem|decision|diagnosis)
    (?::\*\*|\*\*\s?[:—–-])""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for a label that precedes the result on its line, as in `**Root cause**: …`."""
_RECOMMENDATION: Final = phrases("titles.recommendation")
_YES_NO: Final = re.compile(r"\W*(?:yes|no|correct|confirmed)\b(?=[\W])(?!\ (?:need|problem|change))", re.IGNORECASE)
_FIRST_PERSON: Final = re.compile(r"\b(?:i|i['’]\w+|we|my|me|you|your)\b", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"https?://\S+")
_WORD: Final = re.compile(r"\w{4,}")
_LENGTH: Final = ((30, "short"), (60, "medium"))
_DETAILED: Final = 125
"""Minimum characters of a detailed sentence, with its Markdown."""

WEIGHTS: Final = weight_table("titles.weights")
"""Weight of each property of a candidate. Fitted weights below 0.1 are omitted."""
_RESULT_MIN, _ANSWER_MIN = 0.3, 0.4
"""Minimum score of the title of an outcome, and of a verdict."""
_SHORT_MIN = 24
"""Minimum characters of the beginning of an answer that can be a title."""
_UNCLEAR: Final = word_set("titles.unclear")
"""Properties of a line that a reader who was not there does not understand, or that states no result."""
_ADDRESSED: Final = frozenset({"first person", "aside", "activity"})
"""Properties of a line that may still state a change: `The footer now uses your colours`."""
_ANSWERS: Final = word_set("titles.answers")
"""Properties of a line that can answer a question."""


def best_result(analysis: ExchangeAnalysis) -> tuple[TitleCandidate | None, float]:
    """Return the best line of the answer that states a change and can be understood alone, and its score.

    Without one, return a line that states a cause, or a change although it addresses the user. An item of a list is
    never the result. Without a line, return None and 0.
    """
    scored = [(score(each, analysis), each, set(features(each, analysis))) for each in title_candidates(analysis)]
    whole = [pair for pair in scored if "listed" not in pair[2]]
    clear = [pair for pair in whole if not pair[2] & _UNCLEAR and pair[0] >= _RESULT_MIN]
    stated = [pair for pair in whole if "change" in pair[2] and not pair[2] & (_UNCLEAR - _ADDRESSED)]
    changes = [pair for pair in clear if "change" in pair[2]]
    rating, line, _ = max(changes or clear or stated, key=lambda pair: pair[0], default=(0.0, None, None))
    return line, rating if clear else 0.0


def reported_work(analysis: ExchangeAnalysis) -> str:
    """Return the line that reports work as done without naming it, the last choice for a title, or an empty text."""
    return next((each.text for each in title_candidates(analysis) if UNNAMED.match(each.text)), "")


def best_answer(analysis: ExchangeAnalysis) -> TitleCandidate | None:
    """Return the line that answers the request best, such as a verdict, a cause or a recommendation, or None."""
    answers = [each for each in title_candidates(analysis) if _is_answer(set(features(each, analysis)))]
    best = max(answers, key=lambda each: score(each, analysis), default=None)
    return best if best is not None and score(best, analysis) >= _ANSWER_MIN else None


def _is_answer(properties: set[str]) -> bool:
    return bool(properties & _ANSWERS) and not properties & (_UNCLEAR - {"dependent", "no subject"})


def answer_title(answer: TitleCandidate, analysis: ExchangeAnalysis) -> str:
    """Return the answer, after its question unless the answer names the subject itself or both are too long.

    The title is empty if the answer cannot be understood alone, and does not fit after its question.
    """
    if _names_subject(answer, analysis):
        return answer.text
    question = headline(analysis.request.title.rstrip("?"))
    both = f"{question} → {answer.text}"
    if question and len(both) <= TITLE_MAX:
        return both
    opening = answer.text.partition(". ")[0]
    if len(opening) >= _SHORT_MIN and _is_self_contained(answer, analysis):
        return answer.text
    short = shorten(answer.text, TITLE_MAX - len(question) - 3) if question else ""
    return f"{question} → {short}" if len(short) >= _SHORT_MIN else ""


def _is_self_contained(candidate: TitleCandidate, analysis: ExchangeAnalysis) -> bool:
    """Return whether a line can be understood without the conversation, and states a result."""
    return not _UNCLEAR.intersection(features(candidate, analysis))


def _names_subject(candidate: TitleCandidate, analysis: ExchangeAnalysis) -> bool:
    """Return whether a line can be understood alone and shares at least two words with the request."""
    verdict = candidate.source is Source.HEADING and VERDICT.match(candidate.raw) is not None
    on_request = _shared(candidate.text, analysis.request.text) > 1
    return on_request and not verdict and _is_self_contained(candidate, analysis)


def score(candidate: TitleCandidate, analysis: ExchangeAnalysis) -> float:
    """Return the sum of the weights of a candidate's properties."""
    return sum(WEIGHTS.get(name, 0.0) for name in features(candidate, analysis))


def features(candidate: TitleCandidate, analysis: ExchangeAnalysis) -> Iterator[str]:
    """Yield the properties that apply to a candidate, by their names in `WEIGHTS`."""
    text = candidate.text
    stated = candidate.source is Source.ANSWER
    shared = _shared(text, analysis.request.text)
    yield candidate.source
    yield from _place(candidate, analysis)
    yield next((name for most, name in _LENGTH if len(text) < most), "long")
    for name, holds in (
        ("change", CHANGED.match(text)),
        ("cause", CAUSE.search(candidate.raw)),
        ("two names", len(NAMED.findall(candidate.raw)) > 1),
        ("dependent", needs_context(text) or _DEPENDENT.match(text)),
        ("aside", ASIDE.match(text) or HOUSEKEEPING.search(candidate.raw)),
        ("first person", _FIRST_PERSON.search(text)),
        ("unspecific", not is_specific(_ADDRESS.sub("", text), 3)),
        ("detailed", stated and len(candidate.raw) >= _DETAILED),
        ("no subject", _NO_SUBJECT.match(text) or UNNAMED.match(text)),
        ("result heading", _RESULT_HEADING.match(_heading_of(candidate))),
        ("recommendation", stated and _RECOMMENDATION.match(strip_markdown(candidate.raw))),
        ("yes or no", stated and _YES_NO.match(candidate.raw)),
        ("activity", _ACTIVITY.match(text)),
        ("hedged", _HEDGED.search(candidate.raw)),
        ("generic", GENERIC.search(text)),
        ("incomplete", _is_incomplete(candidate)),
        ("unchanged", stated and _UNCHANGED.search(text)),
        ("intention", _INTENDED.search(candidate.raw)),
        ("remark", stated and _REMARK.match(strip_markdown(candidate.raw))),
        ("description", stated and _describes(candidate, analysis)),
        ("cut in a quotation", text.count('"') % 2 or text.count("`") % 2 or text.count("“") != text.count("”")),
        ("beside the results", stated and is_beside(candidate.topic)),
        ("listed", candidate.listed and not _is_labelled(candidate)),
        ("on the request", shared > 1),
        ("much on the request", shared > 3),
    ):
        if holds:
            yield name


def _place(candidate: TitleCandidate, analysis: ExchangeAnalysis) -> Iterator[str]:
    """Yield the properties that depend on the source of a candidate."""
    if candidate.source is Source.HEADING:
        if candidate.leads:
            yield "heading of the answer"
        elif candidate.raw.endswith((":", ":**")) and not CHANGED.match(candidate.text):
            yield "introduction"
        if VERDICT.match(candidate.raw):
            yield "verdict"
        return
    if candidate.place:
        yield "later in the answer"
    elif not candidate.listed:
        yield "first of the answer"
        if _DONE.match(candidate.raw) and len(candidate.text) > _LENGTH[0][0] and not _HASH.search(candidate.text):
            yield "reported as done"
    if analysis.request.title.endswith("?") or analysis.request.looks:
        yield "answer to a question"


def _is_incomplete(candidate: TitleCandidate) -> bool:
    """Return whether a line leads on to a list, ends openly, or lost its main clause."""
    opens_list = is_open_ended(candidate.raw) and not candidate.leads
    if opens_list or is_open_ended(candidate.text):
        return True
    whole = candidate.text[-20:] in strip_markdown(candidate.raw)[-30:]
    return not whole and _SUBORDINATE.match(candidate.text) is not None


def _is_labelled(candidate: TitleCandidate) -> bool:
    """Return whether a label such as `**Root cause**: ` precedes the result on its line."""
    return _RESULT_LABEL.match(candidate.raw) is not None


def _heading_of(candidate: TitleCandidate) -> str:
    """Return the heading or label that introduces a candidate, or the heading that is the candidate."""
    if candidate.source is Source.HEADING or _is_labelled(candidate):
        return candidate.raw
    return candidate.heading if candidate.opens else ""


def _describes(candidate: TitleCandidate, analysis: ExchangeAnalysis) -> bool:
    """Return whether a sentence of a review describes what was reviewed, instead of a finding or a verdict."""
    if not REVIEW.match(analysis.request.title):
        return False
    return bool(_OVERVIEW.match(strip_markdown(candidate.heading)) or _DESCRIBES.match(candidate.text))


def _shared(text: str, other: str) -> int:
    """Return the number of words with four or more letters that both texts contain."""
    return len({word.lower() for word in _WORD.findall(text)} & {word.lower() for word in _WORD.findall(other)})
