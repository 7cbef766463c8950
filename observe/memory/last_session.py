"""Last session of a folder or a branch: its title, open items and next steps, for the start of a new session."""

from pathlib import Path
from typing import Final

from ...archiver.store import Store, StoredObservation
from ...core import ids
from ...core.clock import now
from ...core.conversation import Milliseconds, Session
from ...core.digest import DigestLine
from ...core.observation import NEXT, OPEN, SUMMARY
from ...core.origin import Origin, Trust
from ...core.project import branch_of
from ...core.tokens import count

_DAYS: Final = 14
_DAY: Final = 86_400_000
"""Milliseconds of a day."""
_CANDIDATES: Final = 20
"""Number of latest sessions of the project that are considered."""
_TOKENS: Final = 60


def last_session(
    store: Store, namespace: str, folder: Path, without: str = "", at: Milliseconds | None = None
) -> DigestLine | None:
    """Return the last session in a folder or on its branch, with its open items and next steps, in at most 60 tokens.

    Sessions that ended more than 14 days ago, and cards that quote untrusted text, are not considered.

    Args:
        store: The store.
        namespace: Namespace of the project.
        folder: Working folder of the new session.
        without: ID of the new session.
        at: Time of the new session. None means the current time.
    """
    since, branch = (now() if at is None else at) - _DAYS * _DAY, branch_of(folder)
    places = {place for place in store.sessions.projects() if _contains(store, namespace, *place)}
    sessions = store.sessions.latest(places, _CANDIDATES)
    cards = store.summaries.of_sessions(sessions)
    for number, session in sessions.items():
        card = cards.get(number)
        is_here = session.cwd == str(folder) or (bool(branch) and session.branch == branch)
        if is_here and session.native_id != without and (session.ended or 0) >= since and card is not None:
            return _line(card) if Origin(card.observation.origin).trust > Trust.LOW else None
    return None


def _contains(store: Store, namespace: str, project: str, cwd: str) -> bool:
    return store.projects.contains(namespace, Session("", "", project=project, cwd=cwd))


def _line(card: StoredObservation) -> DigestLine:
    """Return the title with as many open items and next steps as fit. No item is cut."""
    known = card.observation
    text, notes = known.title.removeprefix(SUMMARY), list[str]()
    for fact in (fact for label in (OPEN, NEXT) for fact in known.facts if fact.startswith(label)):
        if count("; ".join((text, *notes, fact))) <= _TOKENS:
            notes.append(fact)
    return DigestLine(ids.show("observation", card.key), text, known.at, known.origin, tuple(notes))
