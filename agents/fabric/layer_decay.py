"""Decay of layer 3: unused memories are archived, so that they can be restored. None is deleted."""

from math import exp
from typing import Final

from ...core.conversation import Milliseconds
from ...core.memory import StoredMemory
from ...core.memory_filter import ACTIVE, MemoryFilter, MemoryOrder
from ...observe.memory import GLOBAL_NAMESPACES, MemoryCore

KEPT_FROM: Final = 0.2
"""Minimum strength of a memory that stays."""
_DAY: Final = 86_400_000
_AGE, _IDLE = 28, 14
"""Days after which the share of the age, and that of the time without use, is divided by e."""
_UNTOUCHED: Final = 28 * _DAY
"""Milliseconds for which no memory decays."""
_DECLARED: Final = frozenset({"ai_inferred", "system_auto"})
"""Sources of memories that decay. Memories that a user or another toolset stored do not."""
_BATCH: Final = 200


def strength(stored: StoredMemory, at: Milliseconds) -> float:
    """Return the strength of a memory by its age, the time since its last use, and its number of uses."""
    age, idle = at - stored.created, at - max(stored.created, stored.accessed or 0)
    used = min(stored.accesses / 10, 0.5)
    return 0.3 * exp(-age / _DAY / _AGE) + 0.7 * exp(-idle / _DAY / _IDLE) + used


def archive_unused(core: MemoryCore, at: Milliseconds) -> list[StoredMemory]:
    """Forget the weakest of the memories that decay, and return them. Pinned and protected memories stay."""
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
