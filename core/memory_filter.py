"""Filter for memories in lists, counts and recall."""

from enum import StrEnum

from msgspec import Struct

from .context_level import Category, ContextLevel
from .conversation import Milliseconds
from .errors import InvalidInput
from .memory import PROJECT, MemoryState, StoredMemory

ACTIVE = (MemoryState.ACTIVE,)
STORED = (MemoryState.ACTIVE, MemoryState.SUPERSEDED)


class MemoryOrder(StrEnum):
    """Field by which a list of memories is sorted."""

    CREATED = "created_at"
    UPDATED = "updated_at"
    ACCESSED = "accessed_at"
    IMPORTANCE = "importance"
    CONFIDENCE = "confidence"


class MemoryFilter(Struct, frozen=True):
    """Conditions for a memory. Fields are combined with AND, the values of one field with OR.

    An empty field is not a condition.

    Attributes:
        projects: Values of `Memory.project`. Memories in a namespace `project:NAME` match regardless of this condition.
        protected: True for protected memories only, False for other memories only.
        states: States of the memories.
        valid_at: Time at which the memories must be valid. None also admits expired memories, except that lists and
            counts with the default `states` then use the current time.
    """

    namespaces: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    categories: tuple[Category, ...] = ()
    levels: tuple[ContextLevel, ...] = ()
    states: tuple[MemoryState, ...] = STORED
    min_importance: float = 0.0
    min_confidence: float = 0.0
    pinned: bool | None = None
    protected: bool | None = None
    created_before: Milliseconds | None = None
    created_from: Milliseconds | None = None
    valid_at: Milliseconds | None = None

    def admits(self, stored: StoredMemory) -> bool:
        """Return whether a memory satisfies the filter."""
        memory, at = stored.memory, self.valid_at
        begun = at is None or memory.valid_from is None or memory.valid_from <= at
        ended = at is not None and memory.valid_until is not None and memory.valid_until <= at
        conditions = (
            not self.namespaces or memory.namespace in self.namespaces,
            not self.projects or memory.namespace.startswith(PROJECT) or memory.project in self.projects,
            not self.types or memory.type in self.types,
            not self.states or stored.state in self.states,
            not self.tags or not set(self.tags).isdisjoint(memory.tags),
            not self.categories or stored.category in self.categories,
            not self.levels or stored.level in self.levels,
            memory.importance >= self.min_importance,
            stored.stats.confidence >= self.min_confidence,
            self.pinned is None or memory.pinned is self.pinned,
            self.protected is None or stored.protected is self.protected,
            self.created_before is None or stored.created < self.created_before,
            self.created_from is None or stored.created >= self.created_from,
            begun and not ended,
        )
        return all(conditions)


def order_of(name: str) -> MemoryOrder:
    """Return the sort order with this name. Raises `InvalidInput` for an unknown name."""
    try:
        return MemoryOrder(name)
    except ValueError:
        raise InvalidInput(f"Invalid order: {name}", hint=f"Use one of: {', '.join(MemoryOrder)}.") from None
