"""What a new session should know: rules, preferences and decisions, within a hard budget of tokens."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput
from ...core.memory import HeldMemory
from ...core.memory_filter import MemoryFilter, MemoryOrder
from ...core.memory_types import Family
from ...core.origin import Trust
from ...core.tokens import count
from .lookup import by_id, contradicting
from .recalling import Recalling

_HEADING, _LINE, _FRAME = 12, 14, 60
"""Tokens of a section's heading, of a line's mark and confidence, and of what stands around all of it."""
_NAMED, _AGAINST, _ASKED = 12, 6, 28
"""Tokens of an id before a line, of each other one that it contradicts, and of what says what to do about that."""
_GLOBAL_FROM = 0.6
"""From which importance on a preference that holds everywhere joins a project's memories."""
_RELATED, _LOOKED_AT = 5, 200
_SECTIONS = (
    ("Preferences", Family.PREFERENCE),
    ("Decisions", Family.DECISION),
    ("Patterns", Family.PATTERN),
    ("Facts", Family.FACT),
    ("Issues", Family.ISSUE),
)
GOLDEN_TITLE = "Golden Rules (High Confidence)"
EVERYWHERE = ("global", "default")
"""The namespaces of what holds in every project."""


class ContextSection(Struct, frozen=True):
    """Memories under one heading, the weightiest first."""

    title: str
    memories: tuple[HeldMemory, ...]


class Context(Struct, frozen=True):
    """What to tell. `tokens` is what it costs, rather too much than too little, and never more than the budget.

    `left_out` counts what would have been told had there been room.
    `contradictions` are the ids of memories that are told and disagree, in pairs.
    """

    sections: tuple[ContextSection, ...]
    tokens: int
    left_out: int
    contradictions: tuple[tuple[str, str], ...] = ()

    @property
    def memories(self) -> int:
        """How many memories it tells."""
        return sum(len(section.memories) for section in self.sections)

    @property
    def golden(self) -> int:
        """How many of them are golden rules."""
        return sum(held.golden for section in self.sections for held in section.memories)


class Contexts:
    """Chooses memories for a session. Writes nothing, and counts no access."""

    def __init__(self, store: Store, recalling: Recalling, clock: Callable[[], Milliseconds]) -> None:
        self._store, self._recalling, self._clock = store, recalling, clock

    def choose(self, namespace: str | None = None, query: str = "", budget: int = 4_000) -> Context:
        """Golden rules first, then preferences, decisions and patterns of the namespace, within `budget` tokens.

        What holds everywhere joins a project's memories where it is a golden rule, pinned, a decision, an important
        preference, or near to the query. What is pinned is told whatever its type. With a query facts and known issues
        that answer it join too. What is little trusted, and what belongs to a session, stays out. Empty where nothing
        is relevant. Raises `InvalidInput`.
        """
        if budget < 1:
            raise InvalidInput(f"Invalid token budget: {budget}", hint="Give 1 or more tokens.")
        related = self._related(namespace, query) if query.strip() else {}
        candidates = {held.key: held for held in [*self._standing(namespace), *related.values()]}
        trusted = [held for held in candidates.values() if held.memory.origin.trust > Trust.LOW]
        rules = sorted((held for held in trusted if held.golden), key=_rule_order)
        others = sorted(
            (held for held in trusted if not held.golden and held.family is not Family.SESSION),
            key=lambda held: (held.key not in related, -_weight(held, namespace), -held.updated),
        )
        weightiest = [*rules, *others]
        return _fitted(weightiest, contradicting(self._store, (held.key for held in weightiest)), budget)

    def _standing(self, namespace: str | None) -> Iterator[HeldMemory]:
        """What is told without being asked for."""
        at = self._clock()
        where = EVERYWHERE if namespace is None else (namespace, *EVERYWHERE)
        yield from self._select(MemoryFilter(namespaces=where, golden=True, valid_at=at), MemoryOrder.CONFIDENCE)
        home = MemoryFilter(namespaces=EVERYWHERE if namespace is None else (namespace,), golden=False, valid_at=at)
        told = {Family.PREFERENCE, Family.DECISION, Family.PATTERN}
        yield from (held for held in self._select(home, MemoryOrder.CREATED) if held.family in told)
        yield from self._select(MemoryFilter(namespaces=where, pinned=True, valid_at=at), MemoryOrder.IMPORTANCE)
        if namespace is not None:
            wide = MemoryFilter(namespaces=EVERYWHERE, golden=False, valid_at=at)
            yield from filter(_is_told_everywhere, self._select(wide, MemoryOrder.IMPORTANCE))

    def _select(self, wanted: MemoryFilter, order: MemoryOrder) -> list[HeldMemory]:
        return self._store.memories.select(wanted, order, limit=_LOOKED_AT)

    def _related(self, namespace: str | None, query: str) -> dict[int, HeldMemory]:
        where = EVERYWHERE if namespace is None else (namespace, *EVERYWHERE)
        found = self._recalling.recall(query, MemoryFilter(namespaces=where), limit=_RELATED, count_access=False)
        return {each.held.key: each.held for each in found}


def line_price(held: HeldMemory) -> int:
    """About what one memory costs in a context, in tokens."""
    return count(held.memory.content) + _LINE


def _weight(held: HeldMemory, namespace: str | None) -> float:
    """What belongs to the project weighs three times as much."""
    return (3 if held.memory.namespace == namespace else 1) * (held.memory.importance + held.standing.confidence) / 2


def _is_told_everywhere(held: HeldMemory) -> bool:
    important = held.memory.importance >= _GLOBAL_FROM
    return held.family is Family.DECISION or (held.family is Family.PREFERENCE and important)


def _rule_order(held: HeldMemory) -> tuple[float, float, int]:
    return -held.standing.confidence, -held.memory.importance, held.key


def _fitted(weightiest: Sequence[HeldMemory], pairs: Sequence[tuple[int, int]], budget: int) -> Context:
    """As many as fit, the first first; a long one that does not fit makes room for the next. Each pair disagrees."""
    left, dropped = budget - _FRAME - _ASKED * bool(pairs), 0
    against = Counter(key for pair in pairs for key in pair)
    titles = {family: title for title, family in _SECTIONS}
    chosen: dict[str, list[HeldMemory]] = {GOLDEN_TITLE: [], **{title: [] for title, _ in _SECTIONS}}
    for held in weightiest:
        title = GOLDEN_TITLE if held.golden else titles.get(held.family, "Facts")
        marks = _NAMED * bool(against[held.key]) + _AGAINST * against[held.key]
        price = line_price(held) + marks + (0 if chosen[title] else _HEADING)
        if price > left:
            dropped += 1
            continue
        chosen[title].append(held)
        left -= price
    sections = tuple(ContextSection(title, tuple(found)) for title, found in chosen.items() if found)
    told = by_id(pairs, {held.key: held.id for found in chosen.values() for held in found})
    return Context(sections, budget - left if sections else 0, dropped, told)
