"""Outcome of an exchange: one observation with the request, the actions and the result."""

import re
from collections.abc import Collection, Iterator, Sequence

from ...core.conversation import Exchange, Kind
from ...core.observation import Evidence, Observation, ObservationType
from ...core.sentences import TITLE_MAX, headline, sentences, truncate, without_opener
from .answer_headings import is_beside
from .classification import TypeSignals, classify
from .concepts import concepts
from .exchange_analysis import CommitMessage, ExchangeAnalysis, most_telling
from .filler import is_diagnosis, is_filler, is_guess
from .further_results import PART_OF, Section, further_results, observe_results
from .salience import CAUSE, CHANGED, salience
from .selection import evidence, narrative, observed_at, select
from .statements import Statement, quote_of
from .title_candidates import Source, TitleCandidate, bottom_line, is_aside
from .title_context import in_context
from .titles import best_title, score
from .touched_files import MODIFIED_MAX, READ_MAX, TouchedFiles, file_name, is_changelog
from .user_request import is_specific

PROPOSED = "Plan proposed"
"""Prefix of the title of a plan that the user has not approved."""
EXPLAINED = 8
"""Minimum total salience of an answer that becomes an observation although no file was changed."""
TOLD = 2
"""Minimum total salience of the statements in an exchange without a specific request, commit or plan."""
_REFUSED = " (commit refused)"
"""Suffix of a title that is the subject of a commit that failed."""
_STEPS = 5
"""Maximum number of facts from a plan or a request."""
_REQUEST_MAX = 200
"""Maximum characters of the request in the narrative. The subtitle shows its beginning too."""
_REASON = 2
"""Minimum salience of a sentence of the request that becomes a fact if the exchange states no result."""
_DANGLING = re.compile(r"\bdo (?:that|this|it|so|these|those)\W*$", re.IGNORECASE)
"""Pattern for the end of a request that names what to do only by a pronoun, as in `write a script to do that`."""

_POOR, _WEAK = 0.05, 0.30
"""Limits for the score of the best title. Below the first, an observation needs three facts. Below the second, it needs
two."""
_CHECKED = re.compile(r"\b(?:tests?|lint|type-?check|types?|build|hooks?|checks?|pass|fail)", re.IGNORECASE)


def extract_outcome(
    exchange: Exchange,
    analysis: ExchangeAnalysis,
    files: TouchedFiles,
    remarks: Sequence[Statement],
    session_title: str = "",
) -> list[Observation]:
    """Return the outcome of an exchange and its further results, or an empty list.

    `remarks` are findings that have no observation of their own.
    """
    changed = bool(files.modified or analysis.accepted_commits) or _claims_change(analysis)
    if not (changed or analysis.plan or _explains(analysis)):
        return []
    lead = _lead_statements(analysis)
    facts = _facts(analysis, lead, remarks)
    best = best_title(analysis, session_title)
    written = bool(files.modified or analysis.accepted_commits or analysis.plan)
    if _is_trivial(analysis, [*facts, *lead, *analysis.findings, *analysis.statuses]) or (
        best and not written and _is_worthless(score(best, analysis), facts)
    ):
        return []
    facts = facts or select(analysis.request.reasons, count=_STEPS, least=_REASON)
    if not (facts or analysis.accepted_commits or analysis.plan or _is_ordered(analysis)) or _is_changelog(
        files, analysis
    ):
        return []
    further, beside = _divided(further_results(analysis, best), analysis, lead, remarks)
    facts = beside or facts
    apart = _statements_of(further)
    title = _title(best, analysis, files, session_title, apart)
    proofs = (
        *evidence(facts),
        *_request_evidence(analysis),
        *evidence([each for each in lead if each not in facts]),
        *_commit_evidence(analysis),
    )
    outcome = Observation(
        type=_kind(analysis, title, lead, files, changed=changed),
        title=title,
        subtitle=_subtitle(analysis, lead, title),
        narrative=narrative(_narrative_parts(analysis, lead, files)),
        facts=tuple(fact.text for fact in facts),
        concepts=concepts([title, analysis.request.text, *(each.raw for each in (*lead, *facts))], files.modified),
        files_read=files.read[:READ_MAX],
        files_modified=files.modified[:MODIFIED_MAX],
        evidence=proofs or _edit_evidence(exchange),
        at=observed_at(exchange),
    )
    return [outcome, *observe_results(further, exchange, analysis, files, outcome, session_title)]


def _claims_change(analysis: ExchangeAnalysis) -> bool:
    """Return whether the assistant claims a change that the recorded edits do not show."""
    request = analysis.request
    if not analysis.altered and not (request.asks and not request.looks):
        return False
    claims = (*analysis.conclusion, *analysis.findings) if analysis.altered and request.asks else analysis.conclusion
    return any(CHANGED.match(bottom_line(each.text)) for each in claims)


def _explains(analysis: ExchangeAnalysis) -> bool:
    return not analysis.request.routine and sum(max(0, salience(each.raw)) for each in analysis.conclusion) >= EXPLAINED


def _conclusion_statements(analysis: ExchangeAnalysis) -> list[Statement]:
    """Return the conclusion and the commit messages. The messages come first if the request was only to commit."""
    written = [each for commit in analysis.commits for each in commit.body]
    return [*written, *analysis.conclusion] if analysis.request.routine else [*analysis.conclusion, *written]


def _lead_statements(analysis: ExchangeAnalysis) -> list[Statement]:
    """Return up to two sentences on the action and its reason, in order.

    The result is empty if the text consists of lists.
    """
    prose = [
        each
        for each in _conclusion_statements(analysis)
        if not each.listed and salience(each.raw) >= 3 and not (is_aside(each) or is_filler(each))
    ]
    done = [each for each in prose if CHANGED.match(bottom_line(each.text))]
    causes = [each for each in prose if CAUSE.search(each.raw)]
    best = list(dict.fromkeys([*done[:1], *causes[:2], *prose[:2], *done[1:2]]))[:2]
    bodies = [each for commit in analysis.commits for each in commit.body if not each.listed]
    return [each for each in prose if each in best] or bodies[:2]


def _facts(
    analysis: ExchangeAnalysis,
    lead: Sequence[Statement],
    remarks: Sequence[Statement],
    apart: Collection[Statement] = (),
) -> list[Statement]:
    """Return the results of an exchange, or else its lead or the steps of its plan.

    Statements in `apart` are omitted from the conclusion, because further results contain them.
    """
    concluded = [each for each in _conclusion_statements(analysis) if each not in apart]
    diagnosed = any(is_diagnosis(each) for each in analysis.conclusion)
    open_remarks = [each for each in remarks if not (diagnosed and is_diagnosis(each))]
    facts = select(each for each in (*concluded, *open_remarks) if each not in lead and not is_filler(each))
    if len(facts) < 3 and not apart:
        sure = [each for each in analysis.findings if each not in facts and not (is_filler(each) or is_guess(each))]
        facts += select(
            (each for each in sure if not (diagnosed and is_diagnosis(each))), count=4 - len(facts), least=4
        )
    steps = select(analysis.plan.steps, count=_STEPS, least=2) if analysis.plan else []
    return facts or list(lead) or steps


def _divided(
    sections: Sequence[Section], analysis: ExchangeAnalysis, lead: Sequence[Statement], remarks: Sequence[Statement]
) -> tuple[Sequence[Section], list[Statement]]:
    """Return the sections that become further results, and the facts of the outcome beside them.

    The first sections stay in the outcome until it has a fact.
    """
    for start in range(len(sections)):
        if facts := _facts_beside(sections[start:], analysis, lead, remarks):
            return sections[start:], facts
    return [], []


def _facts_beside(
    further: Sequence[Section], analysis: ExchangeAnalysis, lead: Sequence[Statement], remarks: Sequence[Statement]
) -> list[Statement]:
    """Return the facts that are neither further results nor checks."""
    apart = _statements_of(further)
    facts = _facts(analysis, lead, remarks, apart)
    return [each for each in facts if each not in apart and not is_beside(each.topic)]


def _statements_of(sections: Sequence[Section]) -> set[Statement]:
    return {each for section in sections for each in section.statements}


def _is_trivial(analysis: ExchangeAnalysis, statements: Sequence[Statement]) -> bool:
    """Return whether an exchange without a specific request, commit or plan states almost nothing."""
    weight = sum(max(0, salience(each.raw)) for each in statements)
    return weight < TOLD and not (_is_ordered(analysis) or analysis.accepted_commits or analysis.plan)


def _is_ordered(analysis: ExchangeAnalysis) -> bool:
    """Return whether the request is a plan, or asks for a specific change."""
    request = analysis.request
    return request.plan or (request.asks and is_specific(request.title) and not _DANGLING.search(request.title))


def _is_worthless(best: float, facts: Sequence[Statement]) -> bool:
    """Return whether an exchange has too few facts for an observation, given the score of its best title.

    An exchange without an observation stays searchable.
    """
    return (best < _POOR and len(facts) < 3) or (best < _WEAK and len(facts) < 2)


def _is_changelog(files: TouchedFiles, analysis: ExchangeAnalysis) -> bool:
    """Return whether an exchange only recorded earlier work in a changelog."""
    only = bool(files.modified) and all(map(is_changelog, files.modified))
    own = [commit for commit in analysis.accepted_commits if "changelog" not in commit.subject.lower()]
    return only and not (own or analysis.request.plan)


def _title(
    best: TitleCandidate | None,
    analysis: ExchangeAnalysis,
    files: TouchedFiles,
    session_title: str,
    apart: Collection[Statement],
) -> str:
    """Return a title for the exchange.

    The title says that a plan was only proposed, or that a commit was refused. Another candidate gets its subject as a
    prefix. Without a candidate, the title names the changed files.
    """
    if best is None or (best.source is Source.REQUEST and analysis.request.routine):
        return _named_after(files)
    if best.source is Source.PLAN and analysis.plan:
        return headline(f"{'Plan' if analysis.plan.approved else PROPOSED}: {best.text}")
    if best.source is Source.COMMIT and not _commit_of(best, analysis).done:
        return f"{truncate(best.text, TITLE_MAX - len(_REFUSED))}{_REFUSED}"
    return in_context(best, analysis, session_title, changed=bool(files.modified), apart=apart)


def _commit_of(best: TitleCandidate, analysis: ExchangeAnalysis) -> CommitMessage:
    return next(commit for commit in analysis.commits if commit.subject == best.raw)


def _named_after(files: TouchedFiles) -> str:
    return headline(f"Changes to {', '.join(map(file_name, files.modified[:3]))}") if files.modified else "Commit"


def _subtitle(analysis: ExchangeAnalysis, lead: Sequence[Statement], title: str) -> str:
    """Return the subtitle: the request, or else a sentence about the result if the title already states the request."""
    request = analysis.request
    parts = [without_opener(request.text[start:end]) for start, end in sentences(request.text)]
    first = next((part for part in parts if len(part) > 15), "")
    if not request.routine and not request.plan and first and headline(first) != title:
        return truncate(first.removeprefix(PART_OF), 160)
    from_lead = next((each.text for each in lead if headline(each.text) != title), "")
    return truncate(from_lead or (first if request.plan else ""), 160)


def _narrative_parts(analysis: ExchangeAnalysis, lead: Sequence[Statement], files: TouchedFiles) -> Iterator[str]:
    request = analysis.request
    if request.plan:
        yield f"Plan: {truncate(request.title, 140)}"
        yield f"The plan begins: “{truncate(request.text, 260)}”"
    elif request.text and not request.routine:
        yield f"{'Asked' if request.human else 'Task given'}: “{truncate(request.text, _REQUEST_MAX)}”"
    yield from (each.text for each in lead)
    if files.modified:
        more = len(files.modified) - 4
        yield f"Changed {', '.join(map(file_name, files.modified[:4]))}" + (f" and {more} more" if more > 0 else "")
    yield from _ending(analysis)


def _ending(analysis: ExchangeAnalysis) -> Iterator[str]:
    if analysis.plan:
        yield "The plan was approved" if analysis.plan.approved else "The plan was not approved"
    for commit in analysis.commits[-2:]:
        subject = truncate(commit.subject, 100)
        yield f"Committed: “{subject}”" if commit.done else f"The commit “{subject}” was refused"
    checked = [each for each in analysis.statuses if _CHECKED.search(each.text)]
    yield from (each.text for each in checked[-2:] if each.line == checked[-1].line)
    if analysis.left_failing and not checked:
        yield f"The last check, {analysis.left_failing}, failed"
    if analysis.interrupted:
        yield "The user interrupted the work"


def _kind(
    analysis: ExchangeAnalysis, title: str, lead: Sequence[Statement], files: TouchedFiles, *, changed: bool
) -> ObservationType:
    request = analysis.request
    if analysis.plan and not analysis.accepted_commits:
        return ObservationType.DECISION if analysis.plan.approved else ObservationType.GENERAL
    commit = most_telling(analysis.accepted_commits)
    headings = [commit.subject] if commit else []
    if request.asks and not request.routine:
        headings.append(request.title)
    return classify(
        TypeSignals(
            titles=list(dict.fromkeys(headings)) or [title] * (request.routine or title.startswith("Fix")),
            request="" if request.routine else f"{request.title} {request.text if request.plan else request.whole}",
            conclusion=" ".join(each.raw for each in lead),
            writes=() if request.routine and analysis.accepted_commits else files.modified,
            changed=changed,
            plan=request.plan,
        )
    )


def _request_evidence(analysis: ExchangeAnalysis) -> tuple[Evidence, ...]:
    request = analysis.request
    return (Evidence(request.line, request.line, request.quote),) if request.quote else ()


def _edit_evidence(exchange: Exchange) -> tuple[Evidence, ...]:
    """Return the call that changed the first file, as evidence of an exchange without text."""
    calls = {turn.call: turn for turn in exchange.turns if turn.kind is Kind.CALL and turn.call}
    edit = next((calls.get(turn.call, turn) for turn in exchange.turns if turn.writes), None)
    return (Evidence(edit.line, edit.line, quote_of(edit.text.strip().split("\n", 1)[0])),) if edit else ()


def _commit_evidence(analysis: ExchangeAnalysis) -> tuple[Evidence, ...]:
    return tuple(Evidence(commit.line, commit.line, commit.quote) for commit in analysis.commits[-1:])
