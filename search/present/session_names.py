"""Names of sessions: short IDs and titles."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ...core.observation import SUMMARY

if TYPE_CHECKING:
    from ...archiver.store import Store, StoredObservation


class SessionName(NamedTuple):
    """Short ID and title of a session. The title is empty if the session has neither a summary nor its own title."""

    short_id: str
    title: str


class SessionNames:
    """Lookup of the names of sessions by their numbers in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of_all(self, numbers: Iterable[int]) -> dict[int, SessionName]:
        """Return the names of these sessions by number. A session's own title is left out if it is a question."""
        wanted = tuple(dict.fromkeys(numbers))
        summaries = self._store.summaries.of_sessions(wanted)
        return {number: self.of(number, summaries.get(number)) for number in wanted}

    def of(self, number: int, summary: StoredObservation | None) -> SessionName:
        """Return the name of a session. `summary` is None if the session has no summary."""
        session = self._store.sessions.load(number)
        own = "" if session.title.endswith("?") else session.title
        title = summary.observation.title.removeprefix(SUMMARY) if summary else own
        return SessionName(self._store.sessions.short_id(session), title)

    def title(self, number: int) -> str:
        """Return the title of a session's summary, or else the agent's title of the session."""
        return self.of_all([number])[number].title or self._store.sessions.load(number).title
