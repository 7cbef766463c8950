"""Sessions as results: their short IDs, titles, details and outlines."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...archiver.copies.exporter import encodable
from ...archiver.files.clipping import one_line
from ...archiver.store.session_candidates import ambiguous_session
from ...core import ids, tokens
from ...core.conversation import SessionKind
from ...core.observation import DETAIL_TOKENS, NEXT, OPEN, SUMMARY, Observation, ObservationType
from ...core.results import Detail, Hit, OpenItem, SessionEntry, SessionOutline
from ..query.tokenizer import terms
from .details import exchange_observation
from .session_names import SessionNames
from .subagents import Subagents

if TYPE_CHECKING:
    from ...archiver.store import Store, StoredObservation

_ENTRIES = 8
"""Maximum number of observations in the details of a session."""
_NAMING = 3
"""Minimum number of distinct words in the title of a session that names an earlier open item."""
_TITLE = 100
"""Maximum number of characters of the title of an observation in a list."""
_ENTRY_TOKENS, _NO_SUMMARY = 6, 45
"""Tokens of the ID and type of a listed observation, and tokens that a session without a summary costs less."""


class Sessions:
    """Lookup of sessions, by their numbers in the store or by the first characters of their IDs."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def find(self, start: str) -> int | None:
        """Return the session whose ID begins with `start`, or None.

        Raises:
            InvalidInput: Several session IDs begin with this text.
        """
        found = self._store.sessions.beginning_with(encodable(start.strip()))
        if len(found) > 1:
            raise ambiguous_session(self._store.sessions, start)
        return found[0] if found else None

    def detail(self, number: int) -> Detail | None:
        """Return the details of a session: its summary and its first observations. None if it has no exchange."""
        keys, source = self._store.summaries.conversation(number), self._store.sources.main(number)
        if not keys or source is None:
            return None
        session, places = self._store.sessions.load(number), self._store.exchanges.locations([keys[0], keys[-1]])
        first, last = places[keys[0]], places[keys[-1]]
        observation, entries = self._content(number, keys)
        subagents, subagents_total = Subagents(self._store).of_session(session)
        return Detail(
            id=self._store.sessions.short_ids([number])[number],
            kind="session",
            observation=observation,
            project=session.project,
            branch=session.branch,
            session_id=session.native_id,
            session_title=session.title,
            path=source.archived,
            start_line=first.start_line if first.path == source.archived else 1,
            end_line=last.end_line if last.path == source.archived else source.lines,
            tokens=sum(cost.tokens for cost in self._store.exchanges.costs_of(keys)),
            entries=entries,
            subagents=subagents,
            subagents_total=subagents_total,
        )

    def tokens(self, number: int) -> int:
        """Return the estimated cost of the details of a session."""
        keys = self._store.summaries.conversation(number)
        if not keys:
            return 0
        observation, entries = self._content(number, keys)
        listed = sum(tokens.count(each.title) + _ENTRY_TOKENS for each in entries)
        return min(observation.tokens + listed - (0 if observation.facts else _NO_SUMMARY), DETAIL_TOKENS)

    def _content(self, number: int, keys: Sequence[int]) -> tuple[Observation, tuple[SessionEntry, ...]]:
        """Return an observation that describes a session, and its first observations. `keys` are its exchanges."""
        learned = self._store.summaries.summarised(keys)
        summary = self._store.summaries.of_session(number)
        observation = summary.observation if summary else self._without_summary(keys[0], learned)
        title = SessionNames(self._store).of_all([number])[number].title or observation.title.removeprefix(SUMMARY)
        return replace(observation, title=title), tuple(_entry(each) for each in learned[:_ENTRIES])

    def _without_summary(self, first: int, learned: Sequence[StoredObservation]) -> Observation:
        """Return an observation for a session without a summary, titled by its first observation or exchange."""
        if learned:
            known = learned[0].observation
            return Observation(type=ObservationType.GENERAL, title=known.title, at=known.at, origin=known.origin)
        stored = self._store.exchanges.load([first])[first]
        return replace(exchange_observation(stored.exchange), type=ObservationType.GENERAL)

    def outlines(self, hits: Iterable[Hit]) -> tuple[SessionOutline, ...]:
        """Return an outline of the session of each hit, in the same order."""
        found = [self._outline(hit) for hit in hits]
        return tuple(outline for outline in found if outline is not None)

    def _outline(self, hit: Hit) -> SessionOutline | None:
        source = self._store.sources.by_archived(hit.path)
        if source is None or source.session is None:
            return None  # another process has just removed the session
        session, card = self._store.sessions.load(source.session), self._store.summaries.of_session(source.session)
        return SessionOutline(
            id=hit.id,
            title=hit.title,
            project=session.project,
            agent=session.agent,
            kind=session.kind,
            branch=session.branch,
            started=session.started,
            ended=session.ended,
            exchanges=len(self._store.summaries.conversation(source.session)),
            session_id=session.native_id,
            path=hit.path,
            facts=card.observation.facts if card else (),
        )


def items_of(sessions: Iterable[SessionOutline]) -> list[OpenItem]:
    """Return the open items and next steps of the main sessions, which are sorted from the latest to the first."""
    items: dict[str, OpenItem] = {}
    later: list[tuple[str, frozenset[str]]] = []
    for one in sessions:
        for fact in one.facts if one.kind is SessionKind.MAIN else ():
            words = frozenset(terms(fact))
            if fact.startswith((OPEN, NEXT)) and not any(
                place == one.project and title <= words for place, title in later
            ):
                at = one.ended or one.started
                items.setdefault(fact, OpenItem(fact, one.id, at, one.project, one.title, one.session_id, one.path))
        if len(title := frozenset(terms(one.title))) >= _NAMING:
            later.append((one.project, title))
    return [*items.values()]


def _entry(stored: StoredObservation) -> SessionEntry:
    observation = stored.observation
    return SessionEntry(ids.show("observation", stored.key), str(observation.type), one_line(observation.title, _TITLE))
