"""Answers without a language model, composed of sentences and quotations from the archive.

Transcript lines of an entry are quoted if its text does not answer the question. Findings that replace or contradict
each other are marked.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from ...core.conversation import show_day
from ...core.query import Filters, Grouping
from ...core.results import (
    AnswerLabel,
    CitedAnswer,
    CitedSession,
    CitedSource,
    Detail,
    Finding,
    FindingKind,
    TimeExpression,
)
from ...search.query.relevance import key_words, repeats
from .best_answer import with_best_answer
from .evidence_search import FoundEvidence, MeteredArchive, find_commands, find_evidence, labels_of
from .findings import BEST, OTHER, NamedScope, finding_of, named_scope, passage_of, session_finding
from .question_plan import asks_for_open_items, names_no_topic

if TYPE_CHECKING:
    from ...search.archive_search import ArchiveSearch
    from ...templates.render import Renderer

_CLAIMS = {FindingKind.DECISION, FindingKind.PATTERN}
"""Kinds of findings that state a rule or choice for the future. Two of them can contradict each other."""
_PAIRS: Final = 256
"""Maximum number of pairs of titles whose comparison is cached. The same hits occur in many searches."""


def with_conflicts(
    findings: Sequence[Finding], details: Sequence[Detail], replaced: Mapping[str, str]
) -> list[Finding]:
    """Add to each finding the IDs of the findings that replace or contradict it.

    `replaced` maps entries to those that replaced them according to the archive. In addition, `RuleJudge` compares the
    titles of each pair of decisions and patterns. If the first finding is replaced, its replacement moves to the front,
    or else the first finding that is not replaced.
    """
    if not findings:
        return []
    by_id = {detail.id: detail for detail in details}
    superseded = {**replaced}
    against: dict[str, list[str]] = {}
    claims = sorted((each for each in findings if each.kind in _CLAIMS), key=lambda each: each.at or 0)
    for older, newer in combinations([by_id[each.sources[0].id] for each in claims], 2):
        verdict = _verdict(older.observation.title, newer.observation.title)
        if verdict == "supersedes":
            superseded.setdefault(older.id, newer.id)
        elif verdict == "contradicts":
            against.setdefault(older.id, []).append(newer.id)
            against.setdefault(newer.id, []).append(older.id)
    shown = {finding.sources[0].id for finding in findings}
    marked = [
        replace(
            each,
            superseded_by=superseded.get(each.sources[0].id, ""),
            contradicts=tuple(one for one in against.get(each.sources[0].id, ()) if one in shown),
        )
        for each in findings
    ]
    first = _newest(marked) or next((each for each in marked if not each.superseded_by), marked[0])
    return [first, *(each for each in marked if each is not first)]


@lru_cache(_PAIRS)
def _verdict(older: str, newer: str) -> str:
    """Return what `RuleJudge` finds about an older and a newer title, such as `contradicts`."""
    # Few answers compare titles, and loading the rules takes 40 ms.
    from ...observe.memory.rule_judge import RuleJudge

    return RuleJudge().judge(older, newer).verdict


def _newest(marked: Sequence[Finding]) -> Finding | None:
    """Return the finding that finally replaces the first one, or None if it is not among the findings."""
    by_id = {finding.sources[0].id: finding for finding in marked}
    found: Finding | None = marked[0]
    for _ in marked:
        if found is None or not found.superseded_by:
            break
        found = by_id.get(found.superseded_by)
    return found


ANSWER_TOKENS: Final = 2_000
"""Default maximum tokens of an answer."""
_SAME: Final = 0.9
"""A finding is a repetition if an earlier finding contains at least this share of its words."""
_NEAREST: Final = 3
"""Maximum number of entries of other times that are shown if nothing is from the time in the question."""
_PASSAGES, _PASSAGE_TOKENS = 3, 200
"""Maximum number of passages, and of tokens of the whole answer, if no finding is certain to be the answer."""
_ITEMS: Final = 10
"""Maximum number of open items and next steps in an answer."""


def extractive_answer(
    archive: "ArchiveSearch",
    renderer: "Renderer",
    question: str,
    filters: Filters | None = None,
    here: str = "",
    budget: int = ANSWER_TOKENS,
    also: Sequence[str] = (),
) -> CitedAnswer:
    """Return an answer of at most `budget` tokens, as the renderer prints it.

    Args:
        archive: The archive to search.
        renderer: The renderer, which counts the tokens of the answer and of the entries read for it.
        question: The question.
        filters: Only entries that satisfy these filters are used.
        here: The current project, whose entries rank higher.
        budget: Maximum tokens of the answer.
        also: Other wordings of the question.

    Raises:
        InvalidInput: The question or a filter is invalid.
    """
    metered = MeteredArchive(archive, renderer)
    filters = filters or Filters()
    sessions = archive.store.sessions
    scope = named_scope(question, filters, [each.name for each in archive.projects()], sessions.branches())
    here = scope.filters.projects[0] if scope.filters.projects and not filters.projects else here
    if asks_for_open_items(scope.rest):
        return renderer.with_answer_tokens(_open_items(metered, question, scope.filters))
    commands = find_commands(metered, question, filters, here)
    if commands.is_whole:
        basis = CitedAnswer(question, suggestions=(commands.advice,))
        labels = labels_of(commands.details)
        return _fitting(basis, commands.findings(labels), commands.details, metered, budget)
    found = _evidence(metered, question, filters, here, scope, also)
    if not (found.details or commands.found):
        return renderer.with_answer_tokens(_nothing_found(question, found, metered))
    details = (*commands.details, *found.details)
    labels = labels_of(details)
    fixes = commands.findings(labels)
    label = AnswerLabel.BEST if fixes else found.label
    others = list(_findings(found, labels, fixes)) if found.details else []
    if label is AnswerLabel.BEST:
        others = [*others[:1], *(each for each in others[1:] if found.relevance.share(each.text))]
    others = with_conflicts(others, found.details, found.replaced)
    if label is AnswerLabel.CLOSEST:
        others, budget = others[:_PASSAGES], min(budget, _PASSAGE_TOKENS)
    basis = CitedAnswer(
        question,
        label=label,
        notices=tuple(_notices(question, found, others if label is AnswerLabel.CLOSEST else ())),
        suggestions=(commands.advice,) if fixes else (),
    )
    return _fitting(basis, [*fixes, *others], details, metered, budget)


def _open_items(archive: MeteredArchive, question: str, filters: Filters) -> CitedAnswer:
    """Return the open items and next steps of past sessions as an answer."""
    items = archive.archive.open_items(filters, _ITEMS)
    if not items:
        return CitedAnswer(question, suggestions=("No session has open items or next steps.",))
    findings = [
        Finding(
            FindingKind.OTHER,
            item.text,
            (CitedSource("", item.session_id, item.session, item.path, 1, 1),),
            item.at,
        )
        for item in items
    ]
    return CitedAnswer(
        question,
        tuple(findings),
        AnswerLabel.OPEN,
        sources=tuple(source for finding in findings for source in finding.sources),
        suggestions=("To list all open items: palaver open",),
        receipt=archive.receipt(),
    )


def _evidence(
    archive: MeteredArchive, question: str, filters: Filters, here: str, scope: NamedScope, also: Sequence[str]
) -> FoundEvidence:
    """Return the evidence within the project, branch and files that the question names, or from all entries.

    If nothing certain is found there, all entries are searched and no answer is called the best one. A name in the
    question alone raises the scores of other entries that contain it.
    """
    if scope.filters == filters:
        return with_best_answer(archive, find_evidence(archive, question, filters, here, also), question)
    found = find_evidence(archive, scope.rest, scope.filters, "", also)
    if found.details:
        return with_best_answer(archive, replace(found, has_user_filters=bool(filters)), scope.rest)
    return find_evidence(archive, question, filters, here, also)


def _notices(question: str, found: FoundEvidence, passages: Sequence[Finding]) -> Iterator[str]:
    """Yield notes about words of the question that the archive, or all passages of an uncertain answer, lack."""
    if found.absent:
        yield f"Not in the archive: {', '.join(found.absent)}."
    if passages:
        for time in found.results.times:
            question = question.replace(time.text, " ")
        unknown = found.relevance.unknown(question, *(finding.text for finding in passages))
        if others := [word for word in unknown if word not in found.absent]:
            yield f"The cited entries do not contain: {', '.join(others)}."
        if found.has_user_filters:
            yield "For more entries, ask again without the filters."


def _nothing_found(question: str, found: FoundEvidence, metered: MeteredArchive) -> CitedAnswer:
    results = found.results
    why = results.explanation
    nearest = why.weak if why else results.hits[:_NEAREST]
    if names_no_topic(question, [each.text for each in results.empty_times]):
        nearest = ()  # Entries of other times are no answer, because the question names no other topic.
    absent = found.absent or (key_words(" ".join(why.missing)) if why else ())
    facts = [f"Not in the archive: {', '.join(absent)}."] if absent else []
    facts += [f"Only entries from {_days(each)} were searched, for `{each.text}`." for each in results.times]
    newest = f" The newest entry is from {show_day(results.newest)}." if results.newest is not None else ""
    facts += [f"Nothing is from {_days(each)} (`{each.text}`).{newest}" for each in results.empty_times]
    if why and why.similar:
        facts.append(f"Similar terms: {', '.join(dict.fromkeys(each.nearest for each in why.similar))}.")
    advice = "Ask in other words, or name a file, a command or an error message."
    if found.has_user_filters:
        advice = "Ask again without the filters, or in other words."
    return CitedAnswer(question, nearest=nearest, suggestions=(*facts, advice), receipt=metered.receipt())


def _days(expression: TimeExpression) -> str:
    """Return the first and last day of a date range, such as `2026-11-16 to 2026-11-22`."""
    first, last = show_day(expression.after), show_day(expression.before - 1)
    return first if first == last else f"{first} to {last}"


def _findings(found: FoundEvidence, labels: Mapping[str, str], fixes: Sequence[Finding]) -> Iterator[Finding]:
    """Yield a finding for each entry, best first. Repetitions of earlier findings and of `fixes` are left out."""
    known, fixed = list[str](), [fix.text for fix in fixes]
    is_listed = found.label is AnswerLabel.LATEST
    for position, detail in enumerate(found.details):
        given = found.claims[detail.id]
        if detail.kind == Grouping.SESSION:
            finding = session_finding(detail, labels)
        elif found.label is AnswerLabel.CLOSEST and not fixes:
            finding = passage_of(detail, given, found.relevance, labels)
        else:
            extent = OTHER if position or fixes or is_listed else BEST
            finding = finding_of(detail, given, found.relevance, labels, extent, None if position else found.answer)
        is_known = repeats(finding.text, known, _SAME) or repeats(finding.text, fixed)
        if detail.id in found.replaced or not is_known:
            known.append(finding.text)
            yield finding


def _fitting(
    basis: CitedAnswer,
    findings: Sequence[Finding],
    details: Sequence[Detail],
    metered: MeteredArchive,
    budget: int,
) -> CitedAnswer:
    """Return the answer with its receipt and as many findings as fit into `budget` tokens, but at least one."""
    for number in range(len(findings), 0, -1):
        found = metered.renderer.with_answer_tokens(_with_sources(basis, findings[:number], details, metered))
        if found.receipt.tokens <= budget or number == 1:
            return found
    raise AssertionError("an answer has a finding")


def _with_sources(
    basis: CitedAnswer, findings: Sequence[Finding], details: Sequence[Detail], metered: MeteredArchive
) -> CitedAnswer:
    """Add the findings, their sources and the receipt to an answer."""
    sources = tuple(source for finding in findings for source in finding.sources)
    labels = {source.path: source.label for source in sources if source.path}
    by_path = {detail.path: detail for detail in reversed(details)}
    sessions = tuple(_session(by_path[path], label) for path, label in labels.items())
    receipt = metered.receipt(list(labels))
    return replace(basis, findings=tuple(findings), sources=sources, sessions=sessions, receipt=receipt)


def _session(detail: Detail, label: str) -> CitedSession:
    at = detail.observation.at
    return CitedSession(label, detail.session_id, detail.session_title, detail.project, detail.path, at)
