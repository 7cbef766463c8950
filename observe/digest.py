"""Digest of the session cards of a period, by project.

A statement is left out if a reader who was not there cannot use it: the title of a session that only repeats its
request, a text that was cut, and what a later session repeats.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from ..core.conversation import SessionKind
from ..core.digest import Digest, DigestLine, ProjectDigest
from ..core.observation import NEXT, OPEN, OUTCOME
from ..core.query import LIMIT_MAX, Filters, Query
from ..core.results import SessionOutline
from ..core.runtime import Progress, silent
from ..core.text import states
from ..core.usage_report import UsageFilter, UsageGroup
from ..search.archive_search import ArchiveSearch
from ..search.present.details import items_of
from .rules.notes import NoteLabel
from .usage import TokenUsage

_LABEL: Final = re.compile(r"(?:Root cause|The root cause|Cause|Problem|The problem|Issue|Note)\s*:\s*")
"""Label in front of a statement that repeats the heading."""
_LEARNED: Final = (f"{NoteLabel.CAUSE}: ", f"{NoteLabel.PITFALL}: ")
_DECIDED: Final = (f"{NoteLabel.DECIDED}: ",)
_ASKED: Final = f"{NoteLabel.ASKED}: "
_CUT: Final = ("…", "...", ":")
"""Ends of texts that are incomplete."""


def digest_of(search: ArchiveSearch, usage: TokenUsage, filters: Filters, progress: Progress = silent) -> Digest:
    """Return the digest of the sessions that match the filters of time, project and tag. See `TokenUsage.report`.

    Raises:
        UnknownProject: A project is unknown.
    """
    sessions = [session for session in _sessions(search, filters) if session.kind is SessionKind.MAIN]
    replies = UsageFilter(filters.after, filters.before, filters.projects, tags=filters.tags)
    spent = usage.report(UsageGroup.PROJECT, replies, progress)
    costs = {row.name: row for row in spent.rows}
    results = _results(search, sessions)
    projects = list[ProjectDigest]()
    for name in dict.fromkeys(session.project for session in sessions):
        project = _project(name, [session for session in sessions if session.project == name], results)
        row = costs.get(name)
        if row is not None:
            counts = row.counts.total
            project = replace(project, tokens=counts, cost=row.cost, unpriced_tokens=row.unpriced_tokens)
        projects.append(project)
    return Digest(
        filters.after,
        filters.before,
        tuple(projects),
        len(sessions),
        spent.total.counts.total,
        spent.total.cost,
        spent.prices,
        spent.total.unpriced_tokens,
    )


def _sessions(search: ArchiveSearch, filters: Filters) -> Iterator[SessionOutline]:
    """Yield the sessions that match, the latest first."""
    query = replace(Query.newest(by="session", limit=LIMIT_MAX), filters=filters)
    while True:
        page = search.sessions(query)
        yield from page.sessions
        if not page.cursor:
            return
        query = replace(query, cursor=page.cursor)


def _results(search: ArchiveSearch, sessions: Iterable[SessionOutline]) -> dict[str, str]:
    """Return the only result of each session without a card, by the ID of the session."""
    named = search.store.sessions.beginning_with
    without_card = (session.session_id for session in sessions if not session.facts)
    numbers = {number: session_id for session_id in without_card for number in named(session_id)}
    return {numbers[number]: title for number, title in search.store.summaries.single_titles([*numbers]).items()}


def _project(name: str, sessions: Sequence[SessionOutline], results: dict[str, str]) -> ProjectDigest:
    """Return the digest of the sessions of one project, which are sorted from the latest to the first."""
    open_items = [
        DigestLine(item.text.removeprefix(OPEN).removeprefix(NEXT), item.session, item.at)
        for item in items_of(sessions)
        if _is_complete(item.text)
    ]
    return ProjectDigest(
        name,
        len(sessions),
        done=_distinct(line for session in sessions for line in _done(session, results.get(session.session_id, ""))),
        decided=_distinct(line for session in sessions for line in _stated(session, _DECIDED)),
        learned=_distinct(line for session in sessions for line in _stated(session, _LEARNED)),
        open=_distinct(open_items),
    )


def _done(session: SessionOutline, result: str) -> Iterator[DigestLine]:
    """Yield what a session achieved: its title, or its first result if the title is the beginning of the request.

    A title that is the whole request, such as the heading of a plan, needs a result.
    """
    asked = next((fact.removeprefix(_ASKED) for fact in session.facts if fact.startswith(_ASKED)), "")
    outcomes = [line.text for line in _stated(session, (OUTCOME,))]
    is_stated = not _repeats(session.title, asked) or (bool(outcomes) and session.title == asked)
    is_telling = bool(session.facts or result) and is_stated and _is_complete(session.title)
    if is_telling:
        outcomes = [session.title, *(text for text in outcomes if not states(session.title, text))]
    if texts := [*dict.fromkeys(outcomes)]:
        yield DigestLine(texts[0], session.id, session.ended or session.started, tuple(texts[1:]))


def _stated(session: SessionOutline, labels: Sequence[str]) -> Iterator[DigestLine]:
    """Yield the complete facts of a card with these labels."""
    for fact in session.facts:
        label = next(filter(fact.startswith, labels), "")
        if label and _is_complete(fact):
            text = _LABEL.sub("", fact.removeprefix(label), count=1)
            yield DigestLine(text[:1].upper() + text[1:], session.id, session.ended or session.started)


def _repeats(title: str, asked: str) -> bool:
    return bool(asked) and asked.casefold().startswith(title.casefold().rstrip(" .…"))


def _is_complete(text: str) -> bool:
    return not text.rstrip().endswith(_CUT)


def _distinct(lines: Iterable[DigestLine]) -> tuple[DigestLine, ...]:
    """Return the first statement of each text."""
    distinct: dict[str, DigestLine] = {}
    for line in lines:
        distinct.setdefault(line.text.casefold(), line)
    return tuple(distinct.values())
