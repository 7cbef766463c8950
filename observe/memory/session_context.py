"""Context for a new session: memories and the digest of the project's past sessions, within a token budget."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.store import Store
from ...core.conversation import Milliseconds
from ...core.digest import DigestLine, DigestSection
from ...core.errors import InvalidInput
from ...core.memory import PROJECT, StoredMemory
from ...core.memory_filter import ACTIVE, MemoryFilter, MemoryOrder
from ...core.memory_types import GOLDEN_RULE, Family
from ...core.origin import Origin, Trust
from ...core.tokens import count
from .memory_records import contradicting
from .project_digest import ProjectDigests
from .recall import MemoryRecall

_LINE_TOKENS, _DIGEST_TOKENS = 15, 16
"""Estimated tokens that each line of a memory, and each line of a digest, needs besides its content."""
_IMPORTANT = 0.6
"""Minimum importance of a global preference that is added to the memories of a project."""
_RELATED, _CANDIDATES = 5, 200
_TITLES = {
    Family.PREFERENCE: "Preferences",
    Family.DECISION: "Decisions",
    Family.PATTERN: "Patterns",
    Family.FACT: "Facts",
    Family.ISSUE: "Issues",
}
GOLDEN_TITLE = "Golden Rules (High Confidence)"
GLOBAL_NAMESPACES = ("global", "default")
"""Namespaces of memories that apply to every project."""


class ContextSection(Struct, frozen=True):
    """Memories under one heading, best first."""

    title: str
    memories: tuple[StoredMemory, ...]


class SessionContext(Struct, frozen=True):
    """Memories for a session, and lines about past sessions of the project (`digest`).

    `tokens` is the cost of the reply that contains this context. It never exceeds the budget. `left_out` and
    `omitted_lines` are the numbers of memories and of lines that did not fit. `contradictions` are pairs of IDs of
    included memories that contradict each other. `withheld` is the number of candidates that are never included: those
    with low trust, and those of all projects that the user neither wrote nor approved.
    """

    sections: tuple[ContextSection, ...]
    tokens: int
    left_out: int
    contradictions: tuple[tuple[str, str], ...] = ()
    digest: tuple[DigestSection, ...] = ()
    omitted_lines: int = 0
    withheld: int = 0

    @property
    def memories(self) -> int:
        """Number of memories in the context."""
        return sum(len(section.memories) for section in self.sections)

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to show."""
        return not (self.sections or self.digest)

    @property
    def digest_lines(self) -> int:
        """Number of lines about past sessions in the context."""
        return sum(len(section.lines) for section in self.digest)

    @property
    def golden_rules(self) -> int:
        """Number of golden rules in the context."""
        return sum(_is_rule(stored) for section in self.sections for stored in section.memories)


class SessionContexts:
    """Selection of memories for sessions. Selected memories do not count as accessed."""

    def __init__(self, store: Store, recall: MemoryRecall, clock: Callable[[], Milliseconds]) -> None:
        self._store, self._recall, self._clock = store, recall, clock
        self._digests = ProjectDigests(store)

    def select(
        self,
        cost: Callable[[SessionContext], int],
        namespace: str | None = None,
        query: str = "",
        budget: int = 4_000,
        *,
        project: str | None = None,
        namesakes: bool = False,
        past: bool = True,
    ) -> SessionContext:
        """Return golden rules, then other memories of the namespace, then the digest of the project, within the budget.

        For a project, the context also includes two kinds of memories that apply to every project. These are golden
        rules, and memories in the user's own words that are decisions, important preferences, pinned, or matches of the
        query. Memories with low trust and session memories are omitted.

        With None as the namespace, the context contains only memories that apply to every project. With a query, it
        also contains matching facts and known issues. `cost` returns the tokens of the reply that contains a context.
        `project` is the namespace of the project whose past sessions are in the digest, by default `namespace`.
        `namesakes` includes the memories and sessions of every folder with the name of this project. Without
        `past`, the context has no digest.

        Raises:
            InvalidInput: The budget is below 1.
        """
        if budget < 1:
            raise InvalidInput(f"Invalid token budget: {budget}", hint="Give 1 or more tokens.")
        ranked, withheld = self._ranked(self._own(namespace, namesakes=namesakes), query)
        conflicts, estimated_max = contradicting(self._store, ranked), budget
        digest = self._digests.select(project or namespace, query, namesakes=namesakes) if past else ()
        while True:
            chosen = _with_digest(_fitting(ranked, conflicts, estimated_max), digest, estimated_max)
            chosen = replace(chosen, withheld=withheld)
            tokens = cost(chosen)
            if tokens <= budget or chosen.is_empty:
                return replace(chosen, tokens=0 if chosen.is_empty else tokens)
            estimated_max -= tokens - budget

    def _own(self, namespace: str | None, *, namesakes: bool) -> tuple[str, ...]:
        """Return the namespaces of the project, or no namespace for a session without a project."""
        if namespace is None:
            return ()
        if not namesakes:
            return (namespace,)
        return tuple(sorted(self._store.projects.namesakes(namespace.removeprefix(PROJECT))))

    def _ranked(self, own: Sequence[str], query: str) -> tuple[list[StoredMemory], int]:
        """Return the candidates, golden rules first, then memories that match the query, and the number withheld."""
        related = self._related(own, query) if query.strip() else {}
        candidates = {each.key: each for each in chain(self._standard(own), related.values())}
        trusted = [
            stored
            for stored in candidates.values()
            if stored.memory.origin.trust > Trust.LOW
            and (not own or stored.memory.namespace in own or _is_from_user(stored))
        ]
        rules = [stored for stored in trusted if _is_rule(stored)]
        rules.sort(key=lambda stored: (-stored.stats.confidence, -stored.memory.importance, stored.key))
        others = [stored for stored in trusted if not _is_rule(stored) and stored.family is not Family.SESSION]
        others.sort(key=lambda stored: (stored.key not in related, -_weight(stored, own), -stored.updated))
        return [*rules, *others], len(candidates) - len(trusted)

    def _standard(self, own: Sequence[str]) -> Iterator[StoredMemory]:
        """Yield the candidates that are selected without a query. Duplicates are possible."""
        everywhere = (*own, *GLOBAL_NAMESPACES)
        yield from self._stored(MemoryFilter(namespaces=everywhere, types=(GOLDEN_RULE,)), MemoryOrder.CONFIDENCE)
        for stored in self._stored(MemoryFilter(namespaces=tuple(own) or GLOBAL_NAMESPACES), MemoryOrder.CREATED):
            if stored.family in {Family.PREFERENCE, Family.DECISION, Family.PATTERN}:
                yield stored
        yield from self._stored(MemoryFilter(namespaces=everywhere, pinned=True), MemoryOrder.IMPORTANCE)
        for stored in self._stored(MemoryFilter(namespaces=GLOBAL_NAMESPACES), MemoryOrder.IMPORTANCE):
            important = stored.family is Family.PREFERENCE and stored.memory.importance >= _IMPORTANT
            if stored.family is Family.DECISION or important:
                yield stored

    def _stored(self, wanted: MemoryFilter, order: MemoryOrder) -> list[StoredMemory]:
        wanted = replace(wanted, states=ACTIVE, valid_at=self._clock())
        return self._store.memories.select(wanted, order, limit=_CANDIDATES)

    def _related(self, own: Sequence[str], query: str) -> dict[int, StoredMemory]:
        wanted = MemoryFilter(namespaces=(*own, *GLOBAL_NAMESPACES), states=ACTIVE)
        found = self._recall.recall(query, wanted, limit=_RELATED, count_access=False)
        return {each.stored.key: each.stored for each in found}


def _with_digest(chosen: SessionContext, digest: Sequence[DigestSection], budget: int) -> SessionContext:
    """Add the first lines under each heading whose estimated tokens fit into the rest of the budget."""
    sections: list[DigestSection] = []
    used = chosen.tokens
    for section in digest:
        lines: list[DigestLine] = []
        for line in section.lines:
            cost = count(line.all_text) + _DIGEST_TOKENS
            if used + cost <= budget:
                used += cost
                lines.append(line)
        if lines:
            sections.append(DigestSection(section.title, tuple(lines)))
    omitted = sum(len(section.lines) for section in digest) - sum(len(section.lines) for section in sections)
    return replace(chosen, tokens=used, digest=tuple(sections), omitted_lines=omitted)


def _is_rule(stored: StoredMemory) -> bool:
    return stored.memory.type == GOLDEN_RULE


def _is_from_user(stored: StoredMemory) -> bool:
    """Return whether the user wrote or approved the memory."""
    return _is_rule(stored) or stored.memory.origin is Origin.HUMAN


def _weight(stored: StoredMemory, own: Sequence[str]) -> float:
    """Return the mean of importance and confidence, tripled for memories of the project."""
    factor = 3 if stored.memory.namespace in own else 1
    return factor * (stored.memory.importance + stored.stats.confidence) / 2


def _fitting(ranked: Sequence[StoredMemory], conflicts: Sequence[tuple[str, str]], budget: int) -> SessionContext:
    """Return the first memories that fit into the budget by their estimated tokens.

    Memories that are too long are skipped.
    """
    sections: dict[str, list[StoredMemory]] = {GOLDEN_TITLE: [], **{title: [] for title in _TITLES.values()}}
    used = left_out = 0
    for stored in ranked:
        cost = count(stored.memory.content) + _LINE_TOKENS
        if used + cost > budget:
            left_out += 1
            continue
        used += cost
        title = GOLDEN_TITLE if _is_rule(stored) else _TITLES.get(stored.family, "Facts")
        sections[title].append(stored)
    shown = {stored.id for memories in sections.values() for stored in memories}
    return SessionContext(
        tuple(ContextSection(title, tuple(memories)) for title, memories in sections.items() if memories),
        used,
        left_out,
        tuple(pair for pair in conflicts if shown.issuperset(pair)),
    )
