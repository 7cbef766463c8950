"""Sub-agents of a session, and of the tool calls that started them."""

from collections.abc import Iterable

from ...archiver.store import Source, Store
from ...core.conversation import Exchange, Session
from ...core.results import StartedSubagent

_LISTED = 12
"""Maximum number of sub-agents in the details of a session. The transcript of the session names all of them."""


class Subagents:
    """Lookup of archived sub-agents. A sub-agent without a transcript is omitted."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def of_session(self, session: Session) -> tuple[tuple[StartedSubagent, ...], int]:
        """Return the first `_LISTED` sub-agents that a session started, oldest first, and the number of all."""
        numbers = [*self._store.sessions.subagents(session)]
        return self._started(numbers[:_LISTED]), len(numbers)

    def of_calls(
        self, source: Source, session: Session, exchanges: Iterable[Exchange]
    ) -> dict[str, tuple[StartedSubagent, ...]]:
        """Return the sub-agents that calls in these exchanges of a source started, by the ID of the call."""
        calls = {turn.call for exchange in exchanges for turn in exchange.turns if turn.call}
        if source.id is None or not calls:
            return {}
        ancestors = self._store.sessions.several(self._store.sessions.ancestors(session)).values()
        scopes = {session.native_id, session.scope, *(ancestor.native_id for ancestor in ancestors)} - {""}
        sessions: dict[str, list[int]] = {}
        for call, number in self._store.subagent_calls.started(source.id, calls, scopes):
            sessions.setdefault(call, []).append(number)
        started = {call: self._started(numbers) for call, numbers in sessions.items()}
        return {call: subagents for call, subagents in started.items() if subagents}

    def _started(self, sessions: Iterable[int]) -> tuple[StartedSubagent, ...]:
        sources = [(number, self._store.sources.main(number)) for number in sessions]
        return tuple(
            StartedSubagent(self._store.sessions.distinct_id(number), source.archived, source.lines)
            for number, source in sources
            if source is not None
        )
