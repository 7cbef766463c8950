"""Which memories are meant: one value for lists, counts and recall, so that all of them agree."""

from enum import StrEnum

from msgspec import Struct

from .conversation import Milliseconds
from .errors import InvalidInput
from .memory import MemoryState, StoredMemory

ACTIVE = (MemoryState.ACTIVE,)
STORED = (MemoryState.ACTIVE, MemoryState.SUPERSEDED)


class MemoryOrder(StrEnum):
    """What a list can be sorted by."""

    CREATED = "created_at"
    UPDATED = "updated_at"
    ACCESSED = "accessed_at"
    IMPORTANCE = "importance"
    CONFIDENCE = "confidence"


class MemoryFilter(Struct, frozen=True):
    """What a memory must satisfy. Different filters combine with AND, the values of one with OR; empty means no filter.

    `valid_at` leaves out what is not valid at that instant; for None the core takes the present one, unless other
    states are asked for, which takes all. `scope` is the beginning of a
    namespace (`project`, `session`). `path_under` is a folder, with or without a slash at its end.
    """

    namespaces: tuple[str, ...] = ()
    scope: str = ""
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    path_under: str = ""
    states: tuple[MemoryState, ...] = STORED
    min_importance: float = 0.0
    min_confidence: float = 0.0
    pinned: bool | None = None
    protected: bool | None = None
    created_before: Milliseconds | None = None
    valid_at: Milliseconds | None = None

    def admits(self, held: StoredMemory) -> bool:
        """Whether a memory satisfies the filter."""
        memory = held.memory
        named = (
            (self.namespaces, memory.namespace),
            (self.types, memory.type),
            (self.projects, memory.project),
            (self.levels, memory.level),
            (self.sources, memory.source),
            (self.sessions, memory.session_id),
            (self.states, held.state),
        )
        if any(wanted and value not in wanted for wanted, value in named):
            return False
        if self.tags and not set(self.tags) & set(memory.tags):
            return False
        return self._placed(held) and self._proven(held) and self._valid(held)

    def _placed(self, held: StoredMemory) -> bool:
        memory = held.memory
        if self.scope and not memory.namespace.startswith(f"{self.scope}:"):
            return False
        return not self.path_under or memory.path.startswith(f"{self.path_under.rstrip('/')}/")

    def _proven(self, held: StoredMemory) -> bool:
        if held.memory.importance < self.min_importance or held.stats.confidence < self.min_confidence:
            return False
        if self.pinned is not None and held.memory.pinned is not self.pinned:
            return False
        return self.protected is None or held.protected is self.protected

    def _valid(self, held: StoredMemory) -> bool:
        if self.created_before is not None and held.created >= self.created_before:
            return False
        begins, ends = held.memory.valid_from, held.memory.valid_until
        at = self.valid_at
        return at is None or ((begins is None or begins <= at) and (ends is None or ends > at))


def order_of(name: str) -> MemoryOrder:
    """The order of this name; raises `InvalidInput`. Only these fields ever reach a statement."""
    try:
        return MemoryOrder(name)
    except ValueError:
        raise InvalidInput(f"Invalid order: {name}", hint=f"Use one of: {', '.join(MemoryOrder)}.") from None
