"""What a new session should know: rules, preferences and decisions, within a hard budget of tokens."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput
from ...core.memory import StoredMemory
from ...core.memory_filter import ACTIVE, MemoryFilter, MemoryOrder
from ...core.memory_types import GOLDEN_RULE, Family
from ...core.origin import Origin, Trust
from ...core.tokens import count
from .lookup import by_id, contradicting
from .recalling import Recalling

_HEADING, _LINE, _FRAME = 5, 11, 70
"""Estimated tokens of a section's heading, of a line's marks, and of the text around the sections."""
_NAMED, _AGAINST, _ASKED = 7, 4, 28
"""Estimated tokens of an id before a line, of each id it contradicts, and of the advice about contradictions."""
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
    memories: tuple[StoredMemory, ...]


class Context(Struct, frozen=True):
    """Memories for a session. `tokens` is the cost of the reply that shows them, never more than the budget.

    `left_out` counts the memories that did not fit.
    `contradictions` are the ids of memories among them that disagree, in pairs.
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
        return sum(_is_rule(held) for section in self.sections for held in section.memories)


class Contexts:
    """Chooses memories for a session. Writes nothing, and counts no access."""

    def __init__(self, store: Store, recalling: Recalling, clock: Callable[[], Milliseconds]) -> None:
        self._store, self._recalling, self._clock = store, recalling, clock

    def choose(
        self,
        namespace: str | None = None,
        query: str = "",
        budget: int = 4_000,
        cost: Callable[[Context], int] | None = None,
    ) -> Context:
        """Choose golden rules first, then preferences, decisions and patterns of the namespace, within the budget.

        A project also gets what is stored for every project, but only golden rules and the user's own words: its
        decisions, important preferences, pinned memories, and with a query what answers it. Little trusted memories
        and those of a session are left out.

        Args:
            namespace: The project; None for what is stored for every project.
            query: What the session is about. Facts and known issues that answer it are added.
            budget: Tokens that the reply may cost.
            cost: Counts the tokens of the reply that shows a context; estimated without it.

        Raises:
            InvalidInput: The budget is less than 1.
        """
        if budget < 1:
            raise InvalidInput(f"Invalid token budget: {budget}", hint="Give 1 or more tokens.")
        related = self._related(namespace, query) if query.strip() else {}
        candidates = {held.key: held for held in [*self._unasked(namespace), *related.values()]}
        trusted = [
            held
            for held in candidates.values()
            if held.memory.origin.trust > Trust.LOW and (_is_of(held, namespace) or _is_the_users(held))
        ]
        rules = sorted(filter(_is_rule, trusted), key=_rule_order)
        others = sorted(
            (held for held in trusted if not _is_rule(held) and held.family is not Family.SESSION),
            key=lambda held: (held.key not in related, -_weight(held, namespace), -held.updated),
        )
        weightiest = [*rules, *others]
        pairs, room = contradicting(self._store, (held.key for held in weightiest)), budget
        while True:
            chosen = _fitted(weightiest, pairs, room)
            if cost is None:
                return chosen
            tokens = cost(chosen)
            if tokens <= budget or not chosen.sections:
                return replace(chosen, tokens=tokens if chosen.sections else 0)
            room -= tokens - budget

    def _unasked(self, namespace: str | None) -> Iterator[StoredMemory]:
        """Yield what a session gets without a query; some of it more than once."""
        at = self._clock()
        where = EVERYWHERE if namespace is None else (namespace, *EVERYWHERE)
        rules = MemoryFilter(namespaces=where, types=(GOLDEN_RULE,), valid_at=at)
        yield from self._select(rules, MemoryOrder.CONFIDENCE)
        home = MemoryFilter(namespaces=EVERYWHERE if namespace is None else (namespace,), valid_at=at)
        shown = {Family.PREFERENCE, Family.DECISION, Family.PATTERN}
        yield from (held for held in self._select(home, MemoryOrder.CREATED) if held.family in shown)
        yield from self._select(MemoryFilter(namespaces=where, pinned=True, valid_at=at), MemoryOrder.IMPORTANCE)
        if namespace is not None:
            wide = MemoryFilter(namespaces=EVERYWHERE, valid_at=at)
            yield from filter(_is_told_everywhere, self._select(wide, MemoryOrder.IMPORTANCE))

    def _select(self, wanted: MemoryFilter, order: MemoryOrder) -> list[StoredMemory]:
        return self._store.memories.select(replace(wanted, states=ACTIVE), order, limit=_LOOKED_AT)

    def _related(self, namespace: str | None, query: str) -> dict[int, StoredMemory]:
        where = EVERYWHERE if namespace is None else (namespace, *EVERYWHERE)
        wanted = MemoryFilter(namespaces=where, states=ACTIVE)
        found = self._recalling.recall(query, wanted, limit=_RELATED, count_access=False)
        return {each.held.key: each.held for each in found}


def _is_rule(held: StoredMemory) -> bool:
    return held.memory.type == GOLDEN_RULE


def _is_the_users(held: StoredMemory) -> bool:
    """Return whether the user said or approved it."""
    return _is_rule(held) or held.memory.origin is Origin.HUMAN


def _is_of(held: StoredMemory, namespace: str | None) -> bool:
    return namespace is None or held.memory.namespace == namespace


def _weight(held: StoredMemory, namespace: str | None) -> float:
    """What belongs to the project weighs three times as much."""
    return (3 if held.memory.namespace == namespace else 1) * (held.memory.importance + held.stats.confidence) / 2


def _is_told_everywhere(held: StoredMemory) -> bool:
    important = held.memory.importance >= _GLOBAL_FROM
    return held.family is Family.DECISION or (held.family is Family.PREFERENCE and important)


def _rule_order(held: StoredMemory) -> tuple[float, float, int]:
    return -held.stats.confidence, -held.memory.importance, held.key


def _fitted(weightiest: Sequence[StoredMemory], pairs: Sequence[tuple[int, int]], budget: int) -> Context:
    """As many as fit, the first first; a long one that does not fit makes room for the next. Each pair disagrees."""
    left, dropped = budget - _FRAME - _ASKED * bool(pairs), 0
    against = Counter(key for pair in pairs for key in pair)
    titles = {family: title for title, family in _SECTIONS}
    chosen: dict[str, list[StoredMemory]] = {GOLDEN_TITLE: [], **{title: [] for title, _ in _SECTIONS}}
    for held in weightiest:
        title = GOLDEN_TITLE if _is_rule(held) else titles.get(held.family, "Facts")
        marks = _NAMED * bool(against[held.key]) + _AGAINST * against[held.key]
        price = count(held.memory.content) + _LINE + marks + (0 if chosen[title] else _HEADING)
        if price > left:
            dropped += 1
            continue
        chosen[title].append(held)
        left -= price
    sections = tuple(ContextSection(title, tuple(found)) for title, found in chosen.items() if found)
    told = by_id(pairs, {held.key: held.id for found in chosen.values() for held in found})
    return Context(sections, budget - left if sections else 0, dropped, told)
