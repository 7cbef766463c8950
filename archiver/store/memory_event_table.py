"""Events of memories, such as recalls and outcomes. Events are removed only when their memory is erased."""

from collections.abc import Iterable, Sequence

from ...core.memory import EventKind, MemoryEvent
from .database import AMONG, Database, listed, placeholders

_COLUMNS = "memory, kind, at, context, session_id, before, id"


class MemoryEventTable:
    """Table of the events in the history of memories, such as edits and recalls."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def add(self, event: MemoryEvent) -> int:
        """Store an event, and return its ID."""
        return self._db.run(
            "INSERT INTO memory_event (memory, kind, at, context, session_id, before) VALUES (?, ?, ?, ?, ?, ?)",
            (event.memory, event.kind, event.at, event.context, event.session_id, event.before),
        )

    def redact(self, event: MemoryEvent) -> None:
        """Replace the texts of a stored event because they contained a secret."""
        self._db.run(
            "UPDATE memory_event SET context = ?, session_id = ?, before = ? WHERE id = ?",
            (event.context, event.session_id, event.before, event.id),
        )

    def of(self, memory: int, kinds: Sequence[EventKind] = (), limit: int = -1) -> list[MemoryEvent]:
        """Return the events of a memory, newest first. If `kinds` is not empty, return only events of these kinds."""
        where = f" AND kind IN ({placeholders(kinds)})" if kinds else ""
        rows = self._db.rows(
            f"SELECT {_COLUMNS} FROM memory_event WHERE memory = ?{where} ORDER BY id DESC LIMIT ?",
            (memory, *kinds, limit),
        )
        return [MemoryEvent(memory, EventKind(kind), *values) for memory, kind, *values in rows]

    def in_context(self, context: str, kind: EventKind) -> list[int]:
        """Return the keys of memories that have an event of this kind whose `context` is exactly this text."""
        return self._db.numbers(
            "SELECT DISTINCT memory FROM memory_event WHERE context = ? AND kind = ?", (context, kind)
        )

    def count(self, memory: int) -> dict[EventKind, int]:
        """Return the number of events of each kind for a memory."""
        rows = self._db.rows("SELECT kind, count(*) FROM memory_event WHERE memory = ? GROUP BY kind", (memory,))
        return {EventKind(kind): count for kind, count in rows}

    def successful_sessions(self, memory: int) -> int:
        """Count the archived sessions that reported a success of a memory. Unknown session IDs are ignored."""
        return self._db.number(
            """SELECT count(DISTINCT session_id) FROM memory_event WHERE memory = ? AND kind = 'succeeded'
               AND session_id IN (SELECT native_id FROM session)""",
            (memory,),
        )

    def memories_with(self, kind: EventKind) -> set[int]:
        """Return the keys of all memories that have an event of this kind."""
        return set(self._db.numbers("SELECT DISTINCT memory FROM memory_event WHERE kind = ?", (kind,)))

    def last_validated(self, memories: Iterable[int]) -> dict[int, int]:
        """Return the time of the last event `applied`, `succeeded` or `failed` of each memory.

        Memories without such an event are omitted.
        """
        return dict(
            self._db.rows(
                f"""SELECT memory, max(at) FROM memory_event WHERE memory {AMONG}
                    AND kind IN ('applied', 'succeeded', 'failed') GROUP BY memory""",
                (listed(memories),),
            )
        )
