"""Rows of sessions in lists: title and result of the card, project, time, length and tokens."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from ..archiver.store import Store
from ..archiver.store.session_label_table import SessionLabel
from ..archiver.store.session_list import SessionTotals
from ..core.conversation import Milliseconds, SessionKind
from ..core.observation import OUTCOME, ending_of
from ..core.results import outcome_of
from ..search.present.details import SessionNames
from .html_filters import WEEK

_COLUMNS: Final = ("agent", "project", "duration", "tokens")
"""Columns that are left out if no row has a value."""
_DIFFERING: Final = {"agent", "project"}
"""Columns that are also left out if all rows have the same value."""


class SessionRow(Struct, frozen=True):
    """Session in a list. `path` is the last part of the address of its page. `ending` is empty for a good one."""

    path: str
    title: str
    result: str
    ending: str
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

    @property
    def is_resumed(self) -> bool:
        """True if the session took a week or longer, so that its length in days says little."""
        return (self.duration or 0) >= WEEK


def rows_of(store: Store, numbers: Sequence[int]) -> list[SessionRow]:
    """Return a row for each session of the store, in the same order."""
    sessions, totals = store.sessions.several(numbers), store.session_list.totals(numbers)
    cards, names = store.summaries.of_sessions(numbers), SessionNames(store).of_all(numbers)
    addresses, labels = store.session_list.addresses(numbers), store.session_labels.of(numbers)
    rows = list[SessionRow]()
    for number in numbers:
        session, card = sessions[number], cards.get(number)
        facts = card.observation.facts if card else ()
        ending = ending_of(facts)
        title = (names[number].title or session.title or "Untitled session").removesuffix(f" ({ending})")
        result = outcome_of(facts, title).removeprefix(OUTCOME)
        exchanges, tokens = totals.get(number, SessionTotals(0, 0))
        rows.append(
            SessionRow(
                addresses[number],
                title,
                result,
                ending,
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
    values = {name: {getattr(row, name) for row in rows} for name in _COLUMNS}
    return [name for name in _COLUMNS if any(values[name]) and (name not in _DIFFERING or len(values[name]) > 1)]
