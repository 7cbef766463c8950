"""Outcome of an exchange: a commit, an edit or an approved plan, with the request, the actions and the result.

An exchange that only commits what an earlier exchange of its session did is recognised.
"""

import re
from collections.abc import Iterator, Sequence

from ...core.conversation import Exchange, Kind
from ...core.observation import Evidence, Observation, ObservationType
from ...core.text import headline, sentences, truncate, without_opener
from .classification import (
    MODIFIED_MAX,
    READ_MAX,
    TouchedFiles,
    TypeSignals,
    classify,
    concepts,
    file_name,
    is_changelog,
)
from .exchange_analysis import (
    MINOR,
    ExchangeAnalysis,
    accepted_commits,
    evidence,
    most_telling,
    narrative,
    observed_at,
    select,
)
from .salience import CAUSE, CHANGED, FINDING, RULE, salience
from .statements import Statement, is_diagnosis, is_filler, is_guess, quote_of
from .titles import answer_title, best_answer, best_result, bottom_line, is_aside, reported_work
from .user_request import stands_alone

_WORD = re.compile(r"\w{4,}")
_STEM = 5
_SHARED = 0.5
"""Minimum share of the words of a commit subject that the title of the earlier work must contain.

Of 82 exchanges that only commit, 60 reach it. Below it, the commit subject says more than the title.
"""


def committed_work(exchange: Exchange, observation: Observation, earlier: Sequence[Observation]) -> int | None:
    """Return the index in `earlier` of the work that an exchange only commits, or None if it did other work.

    A commit often includes an entry in a changelog, so writing one is no other work. If the exchange states facts of
    its own, it must share words with the title of the earlier work, and otherwise with any of its text.

    Args:
        exchange: Exchange that may only run `git commit`.
        observation: Observation of the exchange. If its evidence does not include the commit, the result is None.
        earlier: Observations of earlier exchanges of the session. On a tie, the first one wins.
    """
    commits = accepted_commits(exchange)
    cited = {proof.start_line for proof in observation.evidence}
    if len({commit.subject for commit in commits}) != 1 or commits[-1].line not in cited:
        return None
    if not all(map(is_changelog, exchange.writes)):
        return None
    words = _stems(commits[-1].subject)
    shared = {
        place: len(words & _stems(each.title if observation.facts else _text(each)))
        for place, each in enumerate(earlier)
        if each.files_modified
    }
    best = max(shared, key=lambda place: shared[place], default=None)
    return best if best is not None and shared[best] >= max(2, _SHARED * len(words)) else None


def _text(observation: Observation) -> str:
    """Return title, narrative and facts, for comparison with a commit whose observation has no facts."""
    return " ".join((observation.title, observation.narrative, *observation.facts))


def _stems(text: str) -> set[str]:
    return {word[:_STEM].lower() for word in _WORD.findall(text)}


_STEPS = 5
"""Maximum number of facts from a plan or a request."""
_REMARKS, _REMARK_SALIENCE = 3, 6
"""Maximum number of facts found while working, and their minimum salience."""
_REQUEST_MAX = 200
"""Maximum characters of the request in the narrative. The subtitle shows its beginning too."""
_REASON = 2
"""Minimum salience of a sentence of the request that becomes a fact if the exchange states no result."""
_CLEAR = 0.8
"""Minimum score of a stated result that is a better title than an order that was carried out."""
_CHECKED = re.compile(r"\b(?:tests?|lint|type-?check|types?|build|hooks?|checks?|pass|fail)", re.IGNORECASE)


def extract_outcome(exchange: Exchange, analysis: ExchangeAnalysis, files: TouchedFiles) -> Observation | None:
    """Return the outcome of an exchange that changed something, or None.

    An exchange without a commit, an edit or an approved plan has no outcome, nor does one whose result nothing states.
    """
    approved = analysis.plan is not None and analysis.plan.approved
    changed = bool(files.modified or analysis.accepted_commits) or _reports_change(analysis)
    if not (changed or approved) or _is_changelog(files, analysis):
        return None
    title = outcome_title(analysis)
    if not title:
        return None
    lead = _lead_statements(analysis)
    facts = _facts(analysis, lead) or select(analysis.request.reasons, count=_STEPS, least=_REASON)
    proofs = (
        *evidence(facts),
        *_request_evidence(analysis),
        *evidence([each for each in lead if each not in facts]),
        *_commit_evidence(analysis),
    )
    return Observation(
        type=_kind(analysis, title, lead, files, changed=changed),
        title=title,
        subtitle=subtitle(analysis, lead, title),
        narrative=narrative(_narrative_parts(analysis, lead, files)),
        facts=tuple(fact.text for fact in facts),
        concepts=concepts([title, analysis.request.text, *(each.raw for each in (*lead, *facts))], files.modified),
        files_read=files.read[:READ_MAX],
        files_modified=files.modified[:MODIFIED_MAX],
        evidence=proofs or _edit_evidence(exchange),
        at=observed_at(exchange),
    )


def outcome_title(analysis: ExchangeAnalysis) -> str:
    """Return what changed: the main commit, the plan, the stated result, or an order that was carried out.

    The title is empty if none of them can be understood by a reader who was not there.
    """
    commit = most_telling(analysis.accepted_commits)
    if commit and not MINOR.match(commit.subject) and (subject := headline(commit.subject)):
        return subject
    request = analysis.request
    plan = request.title if request.plan else analysis.plan.title if analysis.plan and analysis.plan.approved else ""
    if plan and (heading := headline(plan)):
        return heading
    result, rating = best_result(analysis)
    ordered = request.orders and not (request.looks or analysis.interrupted) and stands_alone(request.title)
    if result and (rating >= _CLEAR or not ordered):
        return result.text
    if ordered or commit:
        return headline(request.title if ordered else commit.subject if commit else "")
    answer = best_answer(analysis)
    return (answer_title(answer, analysis) if answer else "") or reported_work(analysis)


def _reports_change(analysis: ExchangeAnalysis) -> bool:
    """Return whether a shell command changed files, and the answer states the change."""
    return analysis.altered and any(CHANGED.match(bottom_line(each.text)) for each in analysis.conclusion)


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


def _facts(analysis: ExchangeAnalysis, lead: Sequence[Statement]) -> list[Statement]:
    """Return the results of an exchange with the findings made while working, or else its lead or its plan's steps.

    A diagnosis in the conclusion replaces earlier ones.
    """
    diagnosed = any(is_diagnosis(each) for each in analysis.conclusion)
    remarks = [each for each in remarks_of(analysis) if not (diagnosed and is_diagnosis(each))]
    candidates = (*_conclusion_statements(analysis), *remarks)
    facts = select(each for each in candidates if each not in lead and not is_filler(each))
    steps = select(analysis.plan.steps, count=_STEPS, least=2) if analysis.plan else []
    return facts or list(lead) or steps


def remarks_of(analysis: ExchangeAnalysis) -> list[Statement]:
    """Return the findings and rules that the assistant stated while working.

    Guesses, remarks on the working tree, and sentences that need the previous sentence are omitted.
    """
    kept = [each for each in analysis.findings if FINDING.search(each.raw) or RULE.search(each.raw)]
    sure = [each for each in kept if not (is_guess(each) or is_filler(each))]
    return select(sure, count=_REMARKS, least=_REMARK_SALIENCE)


def _is_changelog(files: TouchedFiles, analysis: ExchangeAnalysis) -> bool:
    """Return whether an exchange only recorded earlier work in a changelog."""
    only = bool(files.modified) and all(map(is_changelog, files.modified))
    own = [commit for commit in analysis.accepted_commits if "changelog" not in commit.subject.lower()]
    return only and not (own or analysis.request.plan)


def subtitle(analysis: ExchangeAnalysis, lead: Sequence[Statement], title: str) -> str:
    """Return the request, or else a sentence about the result if the title already states the request."""
    request = analysis.request
    parts = [without_opener(request.text[start:end]) for start, end in sentences(request.text)]
    first = next((part for part in parts if len(part) > 15), "")
    if not request.routine and not request.plan and first and headline(first) != title:
        return truncate(first, 160)
    from_lead = next((each.text for each in lead if headline(each.text) != title), "")
    return truncate(from_lead or (first if request.plan else ""), 160)


def _narrative_parts(analysis: ExchangeAnalysis, lead: Sequence[Statement], files: TouchedFiles) -> Iterator[str]:
    request = analysis.request
    if request.plan:
        yield f"Plan: {truncate(request.title, 140)}"
        yield f"The plan begins: “{truncate(request.text, 260)}”"
    else:
        yield asked(analysis)
    yield from (each.text for each in lead)
    if files.modified:
        more = len(files.modified) - 4
        yield f"Changed {', '.join(map(file_name, files.modified[:4]))}" + (f" and {more} more" if more > 0 else "")
    yield from _ending(analysis)


def asked(analysis: ExchangeAnalysis) -> str:
    """Return a sentence that quotes the request, or an empty string for a request without a subject."""
    request = analysis.request
    if not request.text or request.routine:
        return ""
    return f"{'Asked' if request.human else 'Task given'}: “{truncate(request.text, _REQUEST_MAX)}”"


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
    if analysis.plan and not changed:
        return ObservationType.DECISION
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
            changed=True,
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
