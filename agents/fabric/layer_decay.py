"""Decay of layer 3 (memories of all projects): unused memories are archived, and the user can restore them."""

from math import exp
from typing import Final

from ...core.conversation import Milliseconds
from ...core.memory import StoredMemory
from ...core.memory_filter import ACTIVE, MemoryFilter, MemoryOrder
from ...observe.memory import GLOBAL_NAMESPACES, MemoryCore

KEPT_FROM: Final = 0.2
"""Minimum strength. Weaker memories are archived."""
_DAY: Final = 86_400_000
_AGE, _IDLE = 28, 14
"""Time constants in days of the two exponential decays: with age, and with the time since the last use."""
_UNTOUCHED: Final = 28 * _DAY
"""Minimum age in milliseconds of a memory that can be archived."""
_DECLARED: Final = frozenset({"ai_inferred", "system_auto"})
"""Values of the field `source` of memories that decay. Memories from the user or another toolset do not decay."""
_BATCH: Final = 200


def strength(stored: StoredMemory, at: Milliseconds) -> float:
    """Return the strength of a memory, from 0 to 1.5, from its age, its last use and its number of uses."""
    age, idle = at - stored.created, at - max(stored.created, stored.accessed or 0)
    used = min(stored.accesses / 10, 0.5)
    return 0.3 * exp(-age / _DAY / _AGE) + 0.7 * exp(-idle / _DAY / _IDLE) + used


def archive_unused(core: MemoryCore, at: Milliseconds) -> list[StoredMemory]:
    """Forget the memories that have become too weak, and return them. Pinned and protected memories are kept."""
    wanted = MemoryFilter(
        namespaces=GLOBAL_NAMESPACES,
        states=ACTIVE,
        pinned=False,
        protected=False,
        created_before=at - _UNTOUCHED,
        valid_at=at,
    )
    longest_unused = core.page(wanted, order=MemoryOrder.ACCESSED, descending=False, limit=_BATCH)
    weak = [each for each in longest_unused if each.memory.source in _DECLARED and strength(each, at) < KEPT_FROM]
    return list(core.forget([each.id for each in weak], reason="unused").forgotten) if weak else []
