"""Filter of memories for lists, counts and recall."""

from enum import StrEnum

from msgspec import Struct

from .conversation import Milliseconds
from .errors import InvalidInput
from .memory import MemoryState, StoredMemory

ACTIVE = (MemoryState.ACTIVE,)
STORED = (MemoryState.ACTIVE, MemoryState.SUPERSEDED)


class MemoryOrder(StrEnum):
    """Sort field of a list."""

    CREATED = "created_at"
    UPDATED = "updated_at"
    ACCESSED = "accessed_at"
    IMPORTANCE = "importance"
    CONFIDENCE = "confidence"


class MemoryFilter(Struct, frozen=True):
    """Conditions on a memory. Fields combine with AND, the values of one field with OR.

    An empty field is not a condition. `valid_at` excludes memories that are not valid at that instant. If `valid_at` is
    None, lists and counts use the current time; if `states` also differs from its default, they ignore validity.
    """

    namespaces: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    states: tuple[MemoryState, ...] = STORED
    min_importance: float = 0.0
    min_confidence: float = 0.0
    pinned: bool | None = None
    protected: bool | None = None
    created_before: Milliseconds | None = None
    valid_at: Milliseconds | None = None

    def admits(self, stored: StoredMemory) -> bool:
        """Return whether a memory satisfies the filter."""
        memory = stored.memory
        named = (
            (self.namespaces, memory.namespace),
            (self.types, memory.type),
            (self.states, stored.state),
        )
        if any(wanted and value not in wanted for wanted, value in named):
            return False
        if self.tags and not set(self.tags) & set(memory.tags):
            return False
        if memory.importance < self.min_importance or stored.stats.confidence < self.min_confidence:
            return False
        if self.pinned is not None and memory.pinned is not self.pinned:
            return False
        return self._admits_state(stored)

    def _admits_state(self, stored: StoredMemory) -> bool:
        if self.protected is not None and stored.protected is not self.protected:
            return False
        if self.created_before is not None and stored.created >= self.created_before:
            return False
        begins, ends, at = stored.memory.valid_from, stored.memory.valid_until, self.valid_at
        return at is None or ((begins is None or begins <= at) and (ends is None or ends > at))


def order_of(name: str) -> MemoryOrder:
    """Return the sort order with this name; raises `InvalidInput` for an unknown name."""
    try:
        return MemoryOrder(name)
    except ValueError:
        raise InvalidInput(f"Invalid order: {name}", hint=f"Use one of: {', '.join(MemoryOrder)}.") from None
