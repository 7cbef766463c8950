"""Answers without a language model, composed of sentences from the archive."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ...core.cited_answer import CitedAnswer, CitedSession, CitedSource, Finding
from ...core.observation import ObservationType
from ...core.query import Filters
from ...core.results import Detail
from ...core.sentences import truncate
from .claims import Claim, claims_of, lines_of
from .evidence_search import FoundEvidence, find_evidence
from .finding_conflicts import with_conflicts
from .finding_kinds import kind_of
from .metered_archive import MeteredArchive
from .quotation import quoted_claim
from .relevance import Relevance, repeats

if TYPE_CHECKING:
    from ...search.archive_search import ArchiveSearch
    from ...templates.render import Renderer

ANSWER_TOKENS: Final = 2_000
"""Maximum tokens of an answer."""


class _Extent(NamedTuple):
    """Length of a finding: characters, number of claims, and the least share of the question that a claim must add."""

    characters: int
    claims: int
    gain: float


_BEST, _OTHER = _Extent(420, 4, 0), _Extent(200, 1, 0.04)
_ASKED: Final = 140
"""Maximum characters of a prompt that stands for an exchange without observations."""
_WEAK: Final = 0.2
"""Score of the best hit below which an answer is weak.

On 559 questions about 98 sessions, 7 of the 10 answers to questions without an answer are weak, and 10 % of the others.
"""
_ANSWER: Final = "? → "
"""Text between a question and the answer of the user, in the facts of a decision."""
_REQUEST: Final = 0.3
"""Weight of a sentence that repeats a prompt."""
_SAME: Final = 0.9
"""Share of the words of a finding at which it repeats an earlier one."""
_ROOM: Final = 80
"""Minimum characters of a shortened claim."""


def extractive_answer(
    archive: "ArchiveSearch",
    renderer: "Renderer",
    question: str,
    filters: Filters | None = None,
    here: str = "",
    budget: int = ANSWER_TOKENS,
) -> CitedAnswer:
    """Return an answer of at most `budget` tokens, as the renderer prints it.

    Args:
        archive: The archive to search.
        renderer: The renderer of the answer, which also determines the cost of what was read.
        question: The question.
        filters: Only entries that satisfy these filters are used.
        here: The current project, whose entries rank higher.
        budget: Maximum tokens of the answer.

    Raises:
        InvalidInput: The question or a filter is invalid.
    """
    metered = MeteredArchive(archive, renderer)
    found = find_evidence(metered, question, filters or Filters(), here)
    if not found.details:
        return renderer.with_answer_tokens(_nothing_found(question, found, metered))
    findings = with_conflicts(list(_findings(metered, question, found)), found.details)
    return _fitting(lambda number: _answer(question, findings[:number], found, metered), findings, renderer, budget)


def _nothing_found(question: str, found: FoundEvidence, metered: MeteredArchive) -> CitedAnswer:
    why = found.results.explanation
    nearest = why.weak if why else ()
    advice = ["Ask in other words, or name a file, a command or an error message of that time."]
    if why and why.missing:
        advice.append(f"Not in the archive: {', '.join(why.missing)}.")
    if why and why.similar:
        advice.append(f"Similar terms: {', '.join(dict.fromkeys(each.nearest for each in why.similar))}.")
    if found.results.query.filters:
        advice.append("Ask again without the filters.")
    return CitedAnswer(question, nearest=nearest, suggestions=tuple(advice), receipt=metered.receipt())


def _findings(archive: MeteredArchive, question: str, found: FoundEvidence) -> Iterator[Finding]:
    """Yield a finding for each entry, best first, without repeated findings."""
    claims = {detail.id: claims_of(detail) for detail in found.details}
    texts = [claim.text for each in claims.values() for claim in each]
    relevance = Relevance(question, [*(detail.observation.title for detail in found.details), *texts])
    known: list[str] = []
    for place, detail in enumerate(found.details):
        given = claims[detail.id]
        if not place and (quote := quoted_claim(archive, detail, given, relevance)):
            given = [quote, *given]
        finding = _finding(detail, given, relevance, found.labels, _OTHER if place else _BEST)
        if detail.replaced_by or not repeats(finding.text, known, _SAME):
            known.append(finding.text)
            yield finding


def _finding(
    detail: Detail, claims: Sequence[Claim], relevance: Relevance, labels: Mapping[str, str], extent: _Extent
) -> Finding:
    title = _title(detail, claims)
    chosen: list[Claim] = []
    left = extent.characters - len(title)
    for _ in range(extent.claims if title else extent.claims + 1):
        known = [text for text in (title, *(claim.text for claim in chosen)) if text]
        useful = [claim for claim in claims if not repeats(claim.text, known)]
        gains = {claim: relevance.gain(claim.text, known) * (_REQUEST if claim.is_request else 1) for claim in useful}
        best = max(gains, key=gains.__getitem__, default=None)
        if best is None or gains[best] < extent.gain or left < min(_ROOM, len(best.text)):
            break
        chosen.append(best._replace(text=_shortened(best.text, left)))
        left -= len(chosen[-1].text)
    chosen.sort(key=lambda claim: next(i for i, each in enumerate(claims) if each[1:] == claim[1:]))
    if not (title or chosen):
        title = detail.observation.title
    text = " ".join(_sentence(each) for each in (title, *(claim.text for claim in chosen)) if each)
    places = [lines_of(title, detail.observation.evidence, detail), *(claim[1:] for claim in chosen)]
    kind = kind_of(detail.observation.type, detail.observation.title, text)
    return Finding(kind, text, tuple(_sources(detail, labels, places)), detail.observation.at)


def _title(detail: Detail, claims: Sequence[Claim]) -> str:
    """Return the title of an observation, or the prompt of an exchange.

    The title is empty for answers to questions, because each fact repeats its question.
    """
    observation = detail.observation
    if observation.type is ObservationType.DECISION and any(_ANSWER in claim.text for claim in claims):
        return ""
    if detail.kind == "exchange" and observation.origin == "human":
        return f"Asked: “{_shortened(observation.subtitle or observation.title, _ASKED)}”"
    return observation.title


def _sources(detail: Detail, labels: Mapping[str, str], places: Sequence[tuple[int, int]]) -> Iterator[CitedSource]:
    """Yield a source for each distinct range of lines. All lines of the entry are cited only if no others are."""
    if detail.path not in labels:
        yield CitedSource(id=detail.id, session_id=detail.session_id)
        return
    whole = (detail.start_line, detail.end_line)
    exact = sorted(set(places) - {whole}) or [whole]
    for number, (first, last) in enumerate(exact):
        public = "" if number else detail.id
        yield CitedSource(public, detail.session_id, labels[detail.path], detail.path, first, last)


def _answer(question: str, findings: Sequence[Finding], found: FoundEvidence, metered: MeteredArchive) -> CitedAnswer:
    sources = tuple(source for finding in findings for source in finding.sources)
    paths = dict.fromkeys(source.path for source in sources if source.path)
    by_path = {detail.path: detail for detail in reversed(found.details)}
    sessions = tuple(_session(by_path[path], found.labels[path]) for path in paths)
    weak = found.results.hits[0].score < _WEAK
    receipt = metered.receipt(list(paths))
    return CitedAnswer(question, tuple(findings), weak=weak, sources=sources, sessions=sessions, receipt=receipt)


def _session(detail: Detail, label: str) -> CitedSession:
    at = detail.observation.at
    return CitedSession(label, detail.session_id, detail.session_title, detail.project, detail.path, at)


def _fitting(
    answer: Callable[[int], CitedAnswer], findings: Sequence[Finding], renderer: "Renderer", budget: int
) -> CitedAnswer:
    """Return the answer with as many of the first findings as the budget allows, and its own cost in the receipt."""
    number = len(findings)
    found = renderer.with_answer_tokens(answer(number))
    while found.receipt.tokens > budget and number > 1:
        number -= 1
        found = renderer.with_answer_tokens(answer(number))
    return found


def _shortened(text: str, characters: int) -> str:
    short = truncate(text, characters)
    if short == text:
        return text
    closing = "”" if short.count("“") > short.count("”") else ""
    return f"{short.rstrip(' .,;:')}…{closing}"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…", "”", ":")) else f"{text}."
