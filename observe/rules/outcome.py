"""How did it end? The one observation that tells what was asked, what was done about it and what came of it."""

import re
from collections.abc import Iterator, Sequence

from ...core.conversation import Exchange, Kind
from ...core.observation import Evidence, Observation, ObservationType
from .concepts import concepts
from .draft import chosen, evidence, narrative, when
from .files import MODIFIED_MAX, READ_MAX, Files, name_of
from .kinds import Signs, kind_of
from .phrases import opening
from .request import tells
from .statements import Statement, quote_of
from .story import Story, telling
from .wording import TITLE_MAX, clip, headline, sentences, without_opener
from .worth import CAUSE, CHANGED, HOUSEKEEPING, leans, worth

PROPOSED = "Plan proposed"
"""How the title of a plan begins that the person did not approve."""
_TITLED_MAX = 200
"""Characters of a sentence that a title is made of; a longer one is about several things."""
EXPLAINED = 8
"""The summed worth from which an answer that changed nothing has taught something."""

_CHECKED = re.compile(r"\b(?:tests?|lint|type-?check|types?|build|hooks?|checks?|pass|fail)", re.IGNORECASE)
_BOTTOM_LINE = re.compile(
    r"(?:the )?(?:actual |real )?(?:fix|root cause|cause|bug|problem|issue)\b(?:(?: is| was) (?:quite )?simple)?"
    r"(?:\s*(?::|is|was)\s+|\s+(?=\w+s\b))",
    re.IGNORECASE,
)
_BY_ME = re.compile(
    r"(?:i|we)(?: have|['’]ve)?\s+(?:also |now |simply |just )*(?=\w+ed\b|made\b|rewrote\b)", re.IGNORECASE
)
_REPORTED = re.compile(r"\b(?:committed|amended|pushed)\b", re.IGNORECASE)
_DEPENDENT = re.compile(r"(?:otherwise|with|so|because|also|then|good|when|scope|done)\b", re.IGNORECASE)
"""How a sentence begins that goes on with what the one before it said."""
_BESIDE = opening(
    r"""
    otherwise | otherwise, | you | if | when you | once you | since (?:both|you|we|this|the change) | i did(?:n['’]t
    | not) | i (?:haven['’]t|have not) | ready | next up | note | one (?:note|caveat|thing) | the most impactful | then
    | compare | run | try | restart | i (?:bet|think|guess|suspect) | maybe | perhaps | probably
    """
)
"""How a sentence begins that is said beside the matter."""
_IN_FILE = re.compile(r"[\w@./-]+\.\w{1,5}(?: \([^()]{1,40}\))?\s*(?::|—|–|-)\s+")


def outcome(exchange: Exchange, told: Story, touched: Files, found: Sequence[Statement]) -> Observation | None:
    """The outcome of an exchange, or None where there is none worth telling. `found` is what was learned on the way
    and has no observation of its own.
    """
    changed = bool(touched.modified or told.commits) or _claims_change(told)
    if not (changed or told.plan or _explains(told)):
        return None
    lead = _lead(told)
    facts = _facts(exchange, told, lead, found)
    title = _title(told, lead, touched, changed=changed)
    return Observation(
        type=_kind(told, title, lead, touched, changed=changed),
        title=title,
        subtitle=_subtitle(told, lead, title),
        narrative=narrative(_narrative(told, lead, touched)),
        facts=tuple(fact.text for fact in facts),
        concepts=concepts([title, told.request.text, *(said.raw for said in (*lead, *facts))], touched.modified),
        files_read=touched.read[:READ_MAX],
        files_modified=touched.modified[:MODIFIED_MAX],
        evidence=(
            *evidence(facts),
            *_asked(told),
            *evidence([said for said in lead if said not in facts]),
            *_done(told),
        ),
        at=when(exchange),
    )


def _claims_change(told: Story) -> bool:
    """Whether a change is told as done, where it was made by commands that name no file."""
    asked = told.request
    if not told.altered and not (asked.asks and not asked.looks):
        return False
    told_of = (*told.conclusion, *told.findings) if told.altered and asked.asks else told.conclusion
    return any(CHANGED.match(_bottom_line(said.text)) for said in told_of)


def _explains(told: Story) -> bool:
    return not told.request.routine and sum(max(0, worth(said.raw)) for said in told.conclusion) >= EXPLAINED


def _said(told: Story) -> list[Statement]:
    """What was concluded, and before it the commit messages where committing was all that was asked."""
    written = [said for commit in told.commits for said in commit.body]
    return [*written, *told.conclusion] if told.request.routine else [*told.conclusion, *written]


def _lead(told: Story) -> list[Statement]:
    """What was done and why, in a sentence each, in the order they were said; none where only lists are."""
    prose = [said for said in _said(told) if not said.listed and worth(said.raw) >= 3 and not _aside(said)]
    done = [said for said in prose if CHANGED.match(_bottom_line(said.text))]
    causes = [said for said in prose if CAUSE.search(said.raw)]
    best = list(dict.fromkeys([*done[:1], *causes[:2], *prose[:2], *done[1:2]]))[:2]
    bodies = [said for commit in told.commits for said in commit.body if not said.listed]
    return [said for said in prose if said in best] or bodies[:2]


def _aside(said: Statement) -> bool:
    """Whether a sentence is a remark beside the matter: housekeeping, advice, a question, what was not tried."""
    return "?" in said.text or (HOUSEKEEPING.search(said.raw) or _BESIDE.match(said.text)) is not None


def _facts(exchange: Exchange, told: Story, lead: Sequence[Statement], found: Sequence[Statement]) -> list[Statement]:
    facts = chosen(said for said in (*_said(told), *found) if said not in lead)
    if len(facts) < 3:
        facts += chosen((said for said in told.findings if said not in facts), count=4 - len(facts), least=4)
    return facts or list(lead) or list(_edits(exchange))


def _edits(exchange: Exchange) -> Iterator[Statement]:
    """Where nobody said what was done, the edits themselves still tell which files it was done to."""
    seen: set[str] = set()
    calls = {turn.call: turn for turn in exchange.turns if turn.kind is Kind.CALL and turn.call}
    for turn in exchange.turns:
        path = turn.writes[0] if turn.writes else ""
        if path and path not in seen and len(seen) < 5:
            seen.add(path)
            call = calls.get(turn.call, turn)
            first = call.text.strip().split("\n", 1)[0]
            told = f"Edited {name_of(path)}"
            yield Statement(told, quote_of(first), told, call.line, call.speaker)


def _title(told: Story, lead: Sequence[Statement], touched: Files, *, changed: bool) -> str:
    """A plan's heading, an order, a commit's subject, what was done, or at last what was asked."""
    asked = told.request
    if told.plan and told.plan.title and not told.commits:
        return headline(f"{'Plan' if told.plan.approved else PROPOSED}: {told.plan.title}")
    commit = telling(told.commits)
    clear = bool(asked.title) and not asked.routine and (asked.plan or tells(asked.title))
    if commit and (asked.plan or not (clear and asked.orders)):
        return headline(commit.subject)
    if clear and asked.orders:
        return headline(asked.title)
    if best := _result(told, lead, changed=changed, wished=clear and asked.asks):
        return headline(_bottom_line(best))
    return (asked.title if not asked.routine and len(asked.title) > 12 else "") or _named_after(touched)


def _result(told: Story, lead: Sequence[Statement], *, changed: bool, wished: bool) -> str:
    """The sentence that says best what came of it; empty where the request says it better."""
    asked = told.request
    said = [one for one in (*lead, *told.conclusion) if len(one.text) < _TITLED_MAX and not _aside(one)]
    if changed:
        if wished and not leans(asked.title) and len(asked.text) < TITLE_MAX:
            return ""
        first = next((one for one in told.conclusion if one.listed), None)
        later = [one for one in reversed(told.findings) if len(one.text) < _TITLED_MAX]
        done = [one for one in (*said, *later) if CHANGED.match(_bottom_line(one.text)) and not leans(one.text)]
        best = [one.text for one in done if not one.listed or (one is first and not wished)]
        best += [one.text for one in lead if _BOTTOM_LINE.match(one.text)]
        if best or tells(asked.title):
            return best[0] if best else ""
    said = said or [one for one in told.findings if len(one.text) < _TITLED_MAX]
    said = [one for one in said if not (_REPORTED.search(one.text) or _DEPENDENT.match(one.text))] or said
    good = [one for one in said if 25 <= len(one.text) <= 160 and not leans(one.text) and worth(one.raw) >= 3]
    good.sort(key=lambda one: one.listed)
    if good and not (good[0].listed and tells(asked.title)):
        return good[0].text
    return "" if tells(asked.title) or not said else said[0].text


def _bottom_line(text: str) -> str:
    """What follows `The fix is simple: `, `I have ` or the name of a file."""
    opening = _BOTTOM_LINE.match(text) or _BY_ME.match(text) or _IN_FILE.match(text)
    return text[opening.end() :] if opening and len(text) - opening.end() > 20 else text


def _named_after(touched: Files) -> str:
    return headline(f"Changes to {', '.join(map(name_of, touched.modified[:3]))}") if touched.modified else "Commit"


def _subtitle(told: Story, lead: Sequence[Statement], title: str) -> str:
    """The request where the title tells the result, else the result."""
    asked = told.request
    parts = [without_opener(asked.text[start:end]) for start, end in sentences(asked.text)]
    first = next((part for part in parts if len(part) > 15), "")
    if not asked.routine and not asked.plan and first and headline(first) != title:
        return clip(first, 160)
    told_by_lead = next((said.text for said in lead if headline(said.text) != title), "")
    return clip(told_by_lead or (first if asked.plan else ""), 160)


def _narrative(told: Story, lead: Sequence[Statement], touched: Files) -> Iterator[str]:
    asked = told.request
    if asked.plan:
        yield f"Plan: {clip(asked.title, 140)}"
        yield clip(asked.text, 300)
    elif asked.text and not asked.routine:
        yield f"{'Asked' if asked.human else 'Task given'}: “{clip(asked.text, 300)}”"
    yield from (said.text for said in lead)
    if touched.modified:
        more = len(touched.modified) - 4
        yield f"Changed {', '.join(map(name_of, touched.modified[:4]))}" + (f" and {more} more" if more > 0 else "")
    yield from _ending(told)


def _ending(told: Story) -> Iterator[str]:
    if told.plan:
        yield "The plan was approved" if told.plan.approved else "The plan was not approved"
    for commit in told.commits[-2:]:
        subject = clip(commit.subject, 100)
        yield f"Committed: “{subject}”" if commit.done else f"The commit “{subject}” was refused"
    checked = [said for said in told.statuses if _CHECKED.search(said.text)]
    yield from (said.text for said in checked[-2:] if said.line == checked[-1].line)
    if told.left_failing and not checked:
        yield f"The last check, {told.left_failing}, failed"
    if told.interrupted:
        yield "The person interrupted the work"


def _kind(told: Story, title: str, lead: Sequence[Statement], touched: Files, *, changed: bool) -> ObservationType:
    asked = told.request
    if told.plan and not told.commits:
        return ObservationType.DECISION if told.plan.approved else ObservationType.GENERAL
    commit = telling(told.commits)
    headings = [commit.subject] if commit else []
    if asked.asks and not asked.routine:
        headings.append(asked.title)
    return kind_of(
        Signs(
            titles=list(dict.fromkeys(headings)) or [title] * (asked.routine or title.startswith("Fix")),
            request="" if asked.routine else f"{asked.title} {asked.text if asked.plan else asked.whole}",
            conclusion=" ".join(said.raw for said in lead),
            writes=() if asked.routine and told.commits else touched.modified,
            changed=changed,
            plan=asked.plan,
        )
    )


def _asked(told: Story) -> tuple[Evidence, ...]:
    asked = told.request
    return (Evidence(asked.line, asked.line, asked.quote),) if asked.quote else ()


def _done(told: Story) -> tuple[Evidence, ...]:
    return tuple(Evidence(commit.line, commit.line, commit.quote) for commit in told.commits[-1:])
