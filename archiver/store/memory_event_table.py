"""What happened to each memory, in order; nothing is ever taken out."""

from collections.abc import Iterable, Sequence
from typing import cast

from ...core.memory import EventKind, MemoryEvent
from .database import AMONG, Database, Row, listed

_COLUMNS = "memory, kind, at, context, session_id, before, id"


class MemoryEventTable:
    """Reads and writes the events of memories."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, event: MemoryEvent) -> int:
        """Keep an event; its id."""
        return self._db.run(
            "INSERT INTO memory_event (memory, kind, at, context, session_id, before) VALUES (?, ?, ?, ?, ?, ?)",
            (event.memory, event.kind, event.at, event.context, event.session_id, event.before),
        )

    def reword(self, event: MemoryEvent) -> None:
        """Put other words in place of those of an event that was kept: they held a secret."""
        self._db.run(
            "UPDATE memory_event SET context = ?, session_id = ?, before = ? WHERE id = ?",
            (event.context, event.session_id, event.before, event.id),
        )

    def of(self, memory: int, kinds: Sequence[EventKind] = (), limit: int = -1) -> list[MemoryEvent]:
        """A memory's events of these kinds, all where none is named; newest first."""
        where, values = _kinds(kinds)
        rows = self._db.rows(
            f"SELECT {_COLUMNS} FROM memory_event WHERE memory = ?{where} ORDER BY id DESC LIMIT ?",
            (memory, *values, limit),
        )
        return [_event(row) for row in rows]

    def in_context(self, context: str, kind: EventKind) -> list[int]:
        """The memories to which this happened in this context."""
        rows = self._db.rows("SELECT DISTINCT memory FROM memory_event WHERE context = ? AND kind = ?", (context, kind))
        return [cast(int, row[0]) for row in rows]

    def count(self, memory: int) -> dict[EventKind, int]:
        """How many events of each kind a memory has."""
        rows = self._db.rows("SELECT kind, count(*) FROM memory_event WHERE memory = ? GROUP BY kind", (memory,))
        return {EventKind(str(kind)): cast(int, count) for kind, count in rows}

    def successful_sessions(self, memory: int) -> int:
        """Count the archived sessions that reported a success of a memory, each once; ids unknown here do not count."""
        return self._db.number(
            """SELECT count(DISTINCT session_id) FROM memory_event WHERE memory = ? AND kind = 'succeeded'
               AND session_id IN (SELECT native_id FROM session)""",
            (memory,),
        )

    def memories_with(self, kind: EventKind) -> set[int]:
        """Return the keys of the memories that have an event of this kind."""
        rows = self._db.rows("SELECT DISTINCT memory FROM memory_event WHERE kind = ?", (kind,))
        return {cast(int, row[0]) for row in rows}

    def last_validated(self, memories: Iterable[int]) -> dict[int, int]:
        """When each of these memories was last applied or had an outcome; those never validated are left out."""
        rows = self._db.rows(
            f"""SELECT memory, max(at) FROM memory_event WHERE memory {AMONG}
                AND kind IN ('applied', 'succeeded', 'failed') GROUP BY memory""",
            (listed(memories),),
        )
        return {cast(int, memory): cast(int, at) for memory, at in rows}


def _kinds(kinds: Sequence[EventKind]) -> tuple[str, tuple[str, ...]]:
    return (f" AND kind IN ({','.join('?' * len(kinds))})", tuple(kinds)) if kinds else ("", ())


def _event(row: Row) -> MemoryEvent:
    memory, kind, at, context, session_id, before, number = row
    return MemoryEvent(
        cast(int, memory),
        EventKind(str(kind)),
        cast(int, at),
        str(context),
        str(session_id),
        str(before),
        cast(int, number),
    )
