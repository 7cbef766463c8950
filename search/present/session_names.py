"""Names of sessions: short IDs and titles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ...core.observation import SUMMARY

if TYPE_CHECKING:
    from ...archiver.store import Store, StoredObservation
    from ...core.conversation import Session


class SessionName(NamedTuple):
    """Short ID and title of a session. The title is empty if the session has neither a summary nor its own title."""

    short_id: str
    title: str


class SessionNames:
    """Lookup of the names of sessions by their numbers in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of_all(self, numbers: Iterable[int]) -> dict[int, SessionName]:
        """Return the names of these sessions by number."""
        sessions = self._store.sessions.several(numbers)
        summaries, short_ids = self._store.summaries.of_sessions(sessions), self._store.sessions.short_ids(sessions)
        untitled = [number for number in sessions if number not in summaries and sessions[number].title_rank <= 0]
        results = self._store.summaries.single_titles(untitled)
        return {
            number: SessionName(short_ids[number], _title(session, summaries.get(number), results.get(number, "")))
            for number, session in sessions.items()
        }

    def title(self, number: int) -> str:
        """Return the title of a session, or else its first prompt, even if that is a question."""
        return self.of_all([number])[number].title or self._store.sessions.load(number).title


def _title(session: Session, summary: StoredObservation | None, result: str) -> str:
    """Return the title of a session's summary, its only `result`, or else its own title.

    The session's own title is the agent's, or the first prompt. A question is no title.
    """
    if summary is not None:
        return summary.observation.title.removeprefix(SUMMARY)
    if result:
        return result
    return "" if session.title.endswith("?") else session.title
