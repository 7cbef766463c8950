"""Rows of sessions in lists: title and result of the card, project, time, length and tokens."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ..archiver.store import Store
from ..archiver.store.session_label_table import SessionLabel
from ..archiver.store.session_list import SessionTotals
from ..core.conversation import Milliseconds, SessionKind
from ..core.observation import OUTCOME
from ..search.present.details import SessionNames

_COLUMNS: Final = ("agent", "project", "duration", "tokens")
"""Columns that are left out if no row has a value. Only an agent that differs between the rows is worth a column."""


class SessionRow(Struct, frozen=True):
    """Session in a list. `path` is the last part of the address of its page."""

    path: str
    title: str
    result: str
    agent: str
    project: str
    branch: str
    is_subagent: bool
    started: Milliseconds | None
    ended: Milliseconds | None
    exchanges: int
    tokens: int
    label: SessionLabel = SessionLabel()

    @property
    def duration(self) -> Milliseconds | None:
        """Time from the first to the last entry, or None for an unknown time or a single entry."""
        if self.started is None or self.ended is None or self.ended <= self.started:
            return None
        return self.ended - self.started


def rows_of(store: Store, numbers: Sequence[int]) -> list[SessionRow]:
    """Return a row for each session of the store, in the same order."""
    sessions, totals = store.sessions.several(numbers), store.session_list.totals(numbers)
    cards, names = store.summaries.of_sessions(numbers), SessionNames(store).of_all(numbers)
    addresses, labels = store.session_list.addresses(numbers), store.session_labels.of(numbers)
    rows = list[SessionRow]()
    for number in numbers:
        session, card = sessions[number], cards.get(number)
        title = names[number].title or session.title or "Untitled session"
        facts = card.observation.facts if card else ()
        outcomes = (fact.removeprefix(OUTCOME) for fact in facts if fact.startswith(OUTCOME))
        # A result that begins with the title would repeat it.
        start = title.rstrip(".…").casefold()
        result = next((outcome for outcome in outcomes if not outcome.casefold().startswith(start)), "")
        exchanges, tokens = totals.get(number, SessionTotals(0, 0))
        rows.append(
            SessionRow(
                addresses[number],
                title,
                result,
                session.agent,
                session.project,
                session.branch,
                session.kind is SessionKind.SUBAGENT,
                session.started,
                session.ended or session.started,
                exchanges,
                tokens,
                labels.get(number, SessionLabel()),
            )
        )
    return rows


def columns_of(rows: Sequence[SessionRow]) -> list[str]:
    """Return the names of the columns that have values."""
    used = [name for name in _COLUMNS if any(getattr(row, name) for row in rows)]
    return [name for name in used if name != "agent" or len({row.agent for row in rows}) > 1]
