"""Context of a title: a subject before the title, or the labels of a list after the title."""

import re
from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from ...core.sentences import TITLE_MAX, headline, truncate
from .answer_headings import VERDICT, stated_headings
from .exchange_analysis import ExchangeAnalysis
from .salience import CHANGED
from .statements import Statement
from .title_candidates import Source, TitleCandidate, title_candidates
from .titles import GENERIC, REVIEW, score
from .user_request import is_specific

_SUBJECT_MAX = 48
_LABEL = re.compile(r"(?:plan|task|goal|request|todo|fix|feat(?:ure)?(?=[:/]))\s*[:/]\s*|please\s+", re.IGNORECASE)
_UNUSABLE = re.compile(
    r"""[?\n]|https?:|^[/@<\[\#(]|n['’]t\b|\b(?:is|are|was|were|does)\b|\b(?:i|i['’]\w+|we|my|me|you|your|this|that|it)\b
    |^(?:in|on|at|for|if|when|what|why|how|who|which|is|are|do|does|can|should|would|there|run|review|check|continue)\b""",
    re.IGNORECASE | re.VERBOSE,
)
"""Pattern for lines that do not name a topic: questions, addresses, commands, and lines with a pronoun."""
_FUNCTION_WORD = re.compile(
    r"(?:The|An?|All|Both|Each|Every|Only|No|It|This|That|These|When|With|For|In|On|Your)\b(?!:)"
)
_WORD = re.compile(r"(?!(?:this|that|with|from|into|when|what|have|does|been|only|also|than|then|they|your)\b)\w{4,}")
_STEM = 5
_POINT = re.compile(r"\*\*([^*`\n]{6,48}?)[:.]?\*\*")
"""Pattern for the label of a list item, in bold type."""
_HEADED_POINT = re.compile(r"\*\*([^*`\n]{4,48}?)[:：]\*\*$")
"""Pattern for a label in bold type above a list."""
_NO_POINT = re.compile(
    r"""(?:tests?|verification|changes?|note|summary|step|phase|option|line|file|modified|result|before|after|created
    |updated|added|removed|fixed)\b|.*\.\w{1,4}\b""",
    re.IGNORECASE | re.VERBOSE,
)
_FOLDERS = re.compile(r"(?<![\w:/.~\\-])(?:[\w@.-]+/){2,}(?=[\w-][\w.-]*\.[A-Za-z]{1,5}\b)")
"""Pattern for the folders of a path with at least two folders."""
_LINE_NUMBER = re.compile(r"(?<!\S)([\w-]+\.[A-Za-z]{1,5}):\d+(?:[,–-]\d+)*(?=[:,]?\s)")
"""Pattern for the name of a file with line numbers."""
_PULL_REQUEST = re.compile(r"/pull/(\d+)|\bPR\s?#?(\d+)")
_FINDINGS_MAX = 3
"""Maximum findings in the title of a review."""
_STATED = frozenset({Source.ANSWER, Source.FINDING})
_PARENTHESIS = re.compile(r"\s*\([^()]*\)")
_NO_RESULT = re.compile(r"\btests?\b|^[^\w-]|^[0-9a-f]{7,40}\b", re.IGNORECASE)
"""Pattern for lines about tests, and for lines that begin with a hash or a symbol."""
_TOPICS = frozenset({Source.REQUEST, Source.SESSION})
_TASK_MAX, _RESULT_MIN = 90, 0.9
"""Maximum characters of a task before its result, and minimum score of the result as a title."""
_PROBLEM_MAX, _SOLUTION_MIN = 112, 0.25
"""Maximum characters of a problem before its solution, and minimum score of the solution as a title."""
_POINTS_MIN, _ANNOUNCED_MAX = 3, 90
"""Minimum number of list labels, and maximum characters of the title to which they are appended."""


def in_context(
    best: TitleCandidate,
    analysis: ExchangeAnalysis,
    session_title: str,
    *,
    changed: bool = False,
    apart: Collection[Statement] = (),
) -> str:
    """Return the title with the context that a reader without the conversation needs.

    Folders are removed from paths, because the observation lists its files. `changed` is True if the exchange
    changed files. Statements in `apart` are not used, because further results contain them.
    """
    title = best.text if best.source is Source.COMMIT else _in_context(best, analysis, session_title)
    if title == best.text and best.source in {*_TOPICS, Source.COMMIT} and changed:
        title = _with_result(best, analysis, {each.raw for each in apart})
    return without_folders(_with_change(title, best, analysis) if changed else title)


def _with_result(best: TitleCandidate, analysis: ExchangeAnalysis, apart: Collection[str]) -> str:
    """Return the title that names a task or a commit, followed by the best line of the answer.

    A long title is returned unchanged. The same applies to a commit subject that shares several words with the line.
    """
    title = best.text
    stated = [each for each in title_candidates(analysis) if each.source is Source.ANSWER and each.raw not in apart]
    results = [replace(each, listed=False) for each in stated if not _NO_RESULT.search(each.text)]
    result = max(results, key=lambda each: score(each, analysis), default=None)
    if result is None or len(title) > _TASK_MAX or score(result, analysis) < _RESULT_MIN:
        return title
    repeats = best.source is Source.COMMIT and len(_stems(title) & _stems(result.text)) > 1
    return title if repeats else f"{title}: {truncate(result.text, TITLE_MAX - len(title) - 2)}"


def _with_change(title: str, best: TitleCandidate, analysis: ExchangeAnalysis) -> str:
    """Return a title that states a problem, followed by the change that solved it. Return a long title unchanged."""
    if best.source not in _STATED or CHANGED.match(best.text) or len(title) > _PROBLEM_MAX:
        return title
    changes = [each for each in title_candidates(analysis) if each.source is Source.ANSWER and _is_change(each.text)]
    solution = max(changes, key=lambda each: score(each, analysis), default=None)
    if solution is None or best.text in solution.raw or score(solution, analysis) < _SOLUTION_MIN:
        return title
    change = truncate(solution.text, TITLE_MAX - len(title) - 2)
    return f"{title}; {change[:1].lower()}{change[1:]}"


def _is_change(text: str) -> bool:
    return CHANGED.match(text) is not None and not _NO_RESULT.search(text)


def section_in_context(
    title: TitleCandidate, statements: Sequence[Statement], analysis: ExchangeAnalysis, session_title: str
) -> str:
    """Return the title of a section of an answer with its subject, or with the name of the review.

    A list of labelled items gets the heading of the section and these labels as its title.
    """
    points = _points(statements)
    heading = headline(_PARENTHESIS.sub("", statements[0].topic), _ANNOUNCED_MAX)
    text = f"{heading}: {'; '.join(points)}" if len(points) >= _POINTS_MIN and is_specific(points[0]) else title.text
    if REVIEW.match(analysis.request.title):
        return without_folders(_review_of([text], analysis))
    return truncate(without_folders(_with_subject(text, analysis, session_title)), TITLE_MAX)


def _points(statements: Iterable[Statement]) -> list[str]:
    """Return the labels in bold type of list items, without those that name no result."""
    labels = (label[1] for each in statements if each.listed and (label := _POINT.match(each.raw)))
    return [label for label in labels if not _NO_POINT.match(label)]


def without_folders(title: str) -> str:
    """Return the title with the name of a file instead of its path and line.

    A title with several paths stays unchanged, because it usually quotes a command.
    """
    if len(_FOLDERS.findall(title)) > 1:
        return title
    return _LINE_NUMBER.sub(r"\1", _FOLDERS.sub("", title))


def _in_context(best: TitleCandidate, analysis: ExchangeAnalysis, session_title: str) -> str:
    is_topic = best.source in _TOPICS
    title = _with_points(best.text, analysis) if is_topic or _announces_list(best, analysis) else best.text
    if is_topic or title != best.text:
        return title
    if REVIEW.match(analysis.request.title):
        return _of_review(best, analysis)
    is_verdict = best.source is Source.HEADING and VERDICT.match(best.raw) is not None
    return _with_subject(title, analysis, session_title, verdict=is_verdict)


def _of_review(best: TitleCandidate, analysis: ExchangeAnalysis) -> str:
    """Return the title of a review with the findings that headings state."""
    findings = [best.text]
    if best.source is Source.HEADING:
        headings = [each for each in analysis.headings if each.raw != best.raw and not each.raw.endswith((":", ":**"))]
        findings += [text for text, _ in stated_headings(headings)]
    return _review_of(findings, analysis)


def _review_of(findings: Sequence[str], analysis: ExchangeAnalysis) -> str:
    """Return a title such as `Review of PR #12: …` with the findings. Without a number, it begins with `Review: `."""
    number = _PULL_REQUEST.search(analysis.request.whole)
    about = f" of PR #{number[1] or number[2]}" if number else ""
    return truncate(f"Review{about}: {'; '.join(findings[:_FINDINGS_MAX])}", TITLE_MAX)


def _announces_list(best: TitleCandidate, analysis: ExchangeAnalysis) -> bool:
    """Return whether the title is the first sentence of an answer that continues with a list."""
    following = analysis.conclusion[1:2]
    return (
        best.source is Source.ANSWER and best.place == 0 and not best.listed and any(each.listed for each in following)
    )


def _with_points(title: str, analysis: ExchangeAnalysis) -> str:
    """Return the title with the labels of the answer's list items appended. Return a long title unchanged."""
    points = _points(analysis.conclusion)
    if not points:
        found = (label[1] for each in analysis.headings if (label := _HEADED_POINT.match(each.raw)))
        points = [label for label in found if not _NO_POINT.match(label)]
    if len(points) < _POINTS_MIN or len(title) > _ANNOUNCED_MAX:
        return title
    return truncate(f"{title}: {'; '.join(points)}", TITLE_MAX)


def _with_subject(title: str, analysis: ExchangeAnalysis, session_title: str, *, verdict: bool = False) -> str:
    """Return the title with a subject as prefix, as in `Login redirect: the token was refreshed twice`.

    A verdict always gets its subject. Any other title that shares a word with the topic of the session, or with the
    request, is returned unchanged.
    """
    session, request = (_LABEL.sub("", line).strip() for line in (session_title, analysis.request.title))
    is_on_topic = not is_specific(analysis.request.title) or _mentions(analysis, session)
    subject = (_name(session) if is_on_topic else "") or (_name(request) if analysis.request.asks else "")
    if not subject or (not verdict and _stems(title) & (_stems(session) | _stems(request))):
        return title
    result = title[:1].lower() + title[1:] if _FUNCTION_WORD.match(title) else title
    return f"{subject}: {truncate(result, TITLE_MAX - len(subject) - 2)}"


def _mentions(analysis: ExchangeAnalysis, topic: str) -> bool:
    """Return whether the request or the answer contains a word of the topic. A session can change its topic."""
    texts = [analysis.request.whole, *(each.text for each in analysis.conclusion)]
    return bool(_stems(topic) & _stems(" ".join(texts)))


def _name(topic: str) -> str:
    """Return the beginning of a topic as a short name, or an empty string."""
    name = headline(topic, _SUBJECT_MAX)
    unusable = name.count('"') % 2 or _UNUSABLE.search(name) or GENERIC.search(name)
    return name if len(name) > 8 and is_specific(name) and not unusable else ""


def _stems(text: str) -> set[str]:
    return {word[:_STEM].lower() for word in _WORD.findall(text)}
