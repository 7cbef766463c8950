"""Graph of memories.

`MemoryGraph` adds and removes edges, and finds paths between memories. Its backfill links each memory without edges to
similar memories.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from math import inf, prod
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.redaction import MemoryRedactor
from ...archiver.store import Store
from ...core import ids
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput
from ...core.memory import Edge, MemoryFilter, MemoryState, Relation, StoredMemory
from .contradictions import Contradictions, edges_at, find_memory, reinstate_targets, supersede

DEPTH_MAX: Final = 10
DIRECTIONS: Final = ("outgoing", "incoming", "both")
EXPANDED_MAX: Final = 20
"""Maximum number of memories that `expand` returns."""
_EXPANDED_DEPTH, _EXPANDED_EDGES, _EXPANDED_NODES = 3, 10, 200
"""Limits of `expand`: path length from a recalled memory, edges followed from each memory, and memories visited."""
_PREVIEW = 150
"""Maximum characters of a memory in a graph."""
_DECAY = 0.7
"""Factor of the relevance for each edge of a path."""
_STRENGTH = {Relation.SUPERSEDES: 1.0, Relation.CAUSED_BY: 0.9, Relation.RELATES_TO: 0.7, Relation.CONTRADICTS: 0.5}
"""Weight of each relation in the score of an expanded memory."""
_VERBS = {
    Relation.RELATES_TO: ("is related to", "is related to"),
    Relation.SUPERSEDES: ("supersedes", "was superseded by"),
    Relation.CAUSED_BY: ("was caused by", "led to"),
    Relation.CONTRADICTS: ("contradicts", "contradicts"),
}
"""Words for each relation, in the direction of the edge and in the opposite direction."""


class MemoryPath(Struct, frozen=True):
    """Path from one memory to another. A step is an edge and the key of the memory it reaches. `relevance` is 0-1."""

    start: int
    relevance: float = 1.0
    steps: tuple[tuple[Edge, int], ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """Public IDs of the memories on the path."""
        return tuple(ids.show("memory", key) for key in (self.start, *(key for _, key in self.steps)))

    def weighted(self, decay: float) -> float:
        """Return the product of the edge weights, each multiplied by `decay`."""
        return prod(edge.weight * decay for edge, _ in self.steps)

    @property
    def explanation(self) -> str:
        """Path as a sentence, such as `mem_3 is related to mem_7`."""
        verbs = [_VERBS[edge.relation][edge.target != key] for edge, key in self.steps]
        first, *others = self.ids
        return (
            f"{first} {', which '.join(f'{verb} {memory_id}' for verb, memory_id in zip(verbs, others, strict=True))}."
        )


class ExpandedMemory(Struct, frozen=True):
    """Memory connected to a recalled memory by edges. `score` (0-1) is the relevance of the path."""

    stored: StoredMemory
    score: float
    hops: int
    explanation: str


class GraphNode(Struct, frozen=True):
    """Memory in a graph.

    `content` contains its first 150 characters. `depth` is the minimum number of edges from the start to it.
    `relevance` is the relevance of the best path to it.
    """

    id: str
    type: str
    content: str
    depth: int
    relevance: float


class MemoryNeighborhood(Struct, frozen=True):
    """Graph around a memory: nodes by depth, the edges between them, and the best path to each node."""

    origin: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]
    paths: tuple[MemoryPath, ...]

    @property
    def depth(self) -> int:
        """Maximum depth of the nodes."""
        return max(node.depth for node in self.nodes)

    def mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart."""
        rows = [f'    {node.id}["{_label(node.content)}"]' for node in self.nodes]
        arrows = [
            f"    {edge.source_id} -->|{'proposed ' if edge.proposed else ''}{edge.relation}| {edge.target_id}"
            for edge in self.edges
        ]
        return "\n".join(["graph TD", *rows, *arrows])


class BackfillResult(Struct, frozen=True):
    """Result of a backfill of edges. Orphans are memories without edges.

    Pass `attempted_to`, the key of the last checked memory, to the next call as `after`.
    """

    initial_orphans: int
    processed: int
    edges_created: int
    remaining_orphans: int
    attempted_to: int


class MemoryGraph:
    """Edges between memories. `contradictions` finds similar memories to link."""

    def __init__(
        self,
        store: Store,
        redactor: MemoryRedactor,
        contradictions: Contradictions,
        clock: Callable[[], Milliseconds],
    ) -> None:
        self._store, self._redactor, self._clock = store, redactor, clock
        self._contradictions = contradictions

    def relate(self, source: str, target: str, relation: Relation, weight: float = 1.0, reason: str = "") -> Edge:
        """Add an edge, or update the weight and reason of an existing edge.

        `supersedes` marks the target as superseded. If the target is a golden rule, the edge is only proposed.

        Raises:
            MemoryNotFound: One of the memories does not exist.
            InvalidInput: The weight is not between 0 and 1, or both IDs are equal.
        """
        if not 0 <= weight <= 1:
            raise InvalidInput(f"Invalid weight: {weight}", hint="Give a number from 0.0 to 1.0.")
        with self._store.transaction():
            start, end = find_memory(self._store, source), find_memory(self._store, target)
            if start.key == end.key:
                raise InvalidInput(f"A memory cannot be related to itself: {source}", hint="Give two different IDs.")
            edge = Edge(start.key, end.key, relation, weight, self._redactor.text(reason))
            if relation is Relation.SUPERSEDES:
                return supersede(self._store, start, end, edge, self._clock())
            return self._store.memory_edges.put(edge)

    def find(self, number: int) -> list[Edge]:
        """Return a list with the edge of this ID, or an empty list if it does not exist."""
        return [edge] if (edge := self._store.memory_edges.load(number)) else []

    def select(
        self, memory_id: str, direction: str = "both", relation: Relation | None = None, target: str | None = None
    ) -> list[Edge]:
        """Return the edges of a memory, or only those to `target`. Raises `MemoryNotFound` or `InvalidInput`."""
        key = find_memory(self._store, memory_id).key
        only = find_memory(self._store, target).key if target is not None else None
        edges = self._edges([key], _checked(direction), [relation] if relation else [])
        return [edge for edge in edges if only in {None, edge.target}]

    def forget(self, edges: Sequence[Edge]) -> list[int]:
        """Remove edges and return their IDs.

        If no other edge supersedes the target of a removed edge, the target regains its importance, confidence and
        state.
        """
        numbers = sorted(edge.id for edge in edges)
        with self._store.transaction():
            self._store.memory_edges.delete(numbers)
            reinstate_targets(self._store, edges, self._clock())
        return numbers

    def edges_of(self, stored: StoredMemory) -> list[Edge]:
        """Return all edges of a memory."""
        return edges_at(self._store, [stored.key])

    def inspect(
        self,
        memory_id: str,
        *,
        depth: int = 2,
        direction: str = "both",
        relations: Collection[Relation] = (),
        decay: float = _DECAY,
    ) -> MemoryNeighborhood:
        """Return the graph around a memory, up to `depth` edges away.

        The relevance of a path is the product of the edge weights, each multiplied by `decay`.

        Raises:
            MemoryNotFound: The memory does not exist.
            InvalidInput: A parameter is out of range.
        """
        if not 0 <= depth <= DEPTH_MAX:
            raise InvalidInput(f"Invalid depth: {depth}", hint=f"Give a number from 0 to {DEPTH_MAX}.")
        if not 0 <= decay <= 1:
            raise InvalidInput(f"Invalid decay factor: {decay}", hint="Give a number from 0.0 to 1.0.")
        origin = find_memory(self._store, memory_id)
        edges: dict[int, Edge] = {}
        depths = {origin.key: 0}

        def follow(keys: Sequence[int]) -> list[Edge]:
            visible = self._visible(self._edges(keys, _checked(direction), relations))
            edges.update((edge.id, edge) for edge in visible)
            return visible

        paths = {origin.key: MemoryPath(origin.key)}
        frontier = [origin.key]
        for level in range(1, depth + 1):
            frontier = _extend(paths, frontier, follow(frontier), lambda path: path.weighted(decay), direction)
            for key in frontier:
                depths.setdefault(key, level)
        return self._neighborhood(origin.key, paths, depths, edges.values())

    def expand(
        self, recalled: Sequence[StoredMemory], where: MemoryFilter | None = None, *, limit: int = EXPANDED_MAX
    ) -> list[ExpandedMemory]:
        """Return valid memories within three edges of recalled memories, best path first.

        The memories satisfy the filter. At most 20 memories are returned, and they do not count as accessed.
        """
        paths = {stored.key: MemoryPath(stored.key) for stored in recalled}
        starts, frontier = set(paths), list(paths)
        for _ in range(_EXPANDED_DEPTH):
            edges = self._visible(edges_at(self._store, frontier))
            frontier = _extend(paths, frontier, edges, _expanded_score, "both", _EXPANDED_EDGES, _EXPANDED_NODES)
        connected = self._store.memories.load([key for key in paths if key not in starts]).values()
        where, at = where or MemoryFilter(), self._clock()
        admitted = [stored for stored in connected if stored.is_valid_at(at) and where.admits(stored)]
        admitted.sort(key=lambda stored: (-paths[stored.key].relevance, stored.key))
        return [
            ExpandedMemory(stored, round(path.relevance, 4), len(path.steps), path.explanation)
            for stored in admitted[: min(limit, EXPANDED_MAX)]
            if (path := paths[stored.key])
        ]

    def backfill(
        self,
        namespace: str | None = None,
        *,
        batch_size: int = 50,
        limit: int = 500,
        after: int = 0,
        dry_run: bool = False,
    ) -> BackfillResult:
        """Link memories without edges to similar memories, oldest first.

        Only memories with keys above `after` are checked. Pass `attempted_to` of the previous result to continue there.
        """
        before, done, created = self._store.memory_edges.count_orphans(namespace), 0, 0
        while done < limit:
            batch = self._store.memory_edges.orphans(namespace, after, min(batch_size, limit - done))
            if not batch:
                break
            created += self._link(list(self._store.memories.load(batch).values()), dry_run=dry_run)
            done, after = done + len(batch), batch[-1]
        return BackfillResult(before, done, created, self._store.memory_edges.count_orphans(namespace), after)

    def _link(self, orphans: Sequence[StoredMemory], *, dry_run: bool) -> int:
        """Add edges from these memories to similar memories, and return the number of new edges."""
        edges = [
            # A memory without edges may be the older of a pair, so a backfill supersedes no memory.
            replace(edge, relation=Relation.CONTRADICTS, proposed=False)
            if edge.relation is Relation.SUPERSEDES
            else edge
            for stored in orphans
            for comparison in self._contradictions.compare(stored.memory, stored=stored)
            if (edge := comparison.edge_from(stored.key)) is not None
        ]
        new = {(frozenset((edge.source, edge.target)), edge.relation): edge for edge in edges}
        if not dry_run:
            with self._store.transaction():
                for edge in new.values():
                    self._store.memory_edges.put(edge)
        return len(new)

    def _edges(self, keys: Sequence[int], direction: str, relations: Collection[Relation]) -> list[Edge]:
        at_start, at_end = direction != "incoming", direction != "outgoing"
        return [
            edge
            for edge in edges_at(self._store, keys)
            if (not relations or edge.relation in relations)
            and ((at_start and edge.source in keys) or (at_end and edge.target in keys))
        ]

    def _visible(self, edges: Sequence[Edge]) -> list[Edge]:
        """Return the edges between memories that are not forgotten, strongest first."""
        ends = self._store.memories.load(list({key for edge in edges for key in (edge.source, edge.target)}))
        forgotten = {key for key, stored in ends.items() if stored.state is MemoryState.ARCHIVED}
        visible = [edge for edge in edges if forgotten.isdisjoint((edge.source, edge.target))]
        return sorted(visible, key=lambda edge: (-edge.weight * _STRENGTH[edge.relation], edge.id))

    def _neighborhood(
        self, origin: int, paths: dict[int, MemoryPath], depths: dict[int, int], edges: Iterable[Edge]
    ) -> MemoryNeighborhood:
        previews = self._store.memories.previews(list(depths), _PREVIEW)
        nodes = [
            GraphNode(ids.show("memory", key), *previews[key], depth, round(paths[key].relevance, 4))
            for key, depth in depths.items()
            if key in previews
        ]
        between = sorted(
            (edge for edge in edges if {edge.source, edge.target} <= depths.keys()), key=lambda edge: edge.id
        )
        best = sorted((path for key, path in paths.items() if key != origin), key=lambda path: -path.relevance)
        rounded = tuple(replace(path, relevance=round(path.relevance, 4)) for path in best)
        return MemoryNeighborhood(ids.show("memory", origin), tuple(nodes), tuple(between), rounded)


def parse_relation(name: str) -> Relation:
    """Return the relation with this name. Raises `InvalidInput` for an unknown name."""
    try:
        return Relation(name)
    except ValueError:
        raise InvalidInput(f"Invalid relation: {name}", hint=f"Use one of: {', '.join(Relation)}.") from None


def _extend(
    paths: dict[int, MemoryPath],
    frontier: Sequence[int],
    edges: Iterable[Edge],
    score: Callable[[MemoryPath], float],
    direction: str,
    edges_max: float = inf,
    paths_max: float = inf,
) -> list[int]:
    """Extend the paths that end at the frontier by one edge. Return the memories with a new or better path.

    At most `edges_max` edges of each memory are followed, and at most `paths_max` paths are kept.
    """
    starts, followed, new = {key: paths[key] for key in frontier}, Counter[int](), dict[int, None]()
    for edge in edges:
        for here, there in ((edge.source, edge.target), (edge.target, edge.source)):
            allowed = direction == "both" or (here == edge.source) == (direction == "outgoing")
            if here not in starts or not allowed or followed[here] >= edges_max:
                continue
            followed[here] += 1
            path = MemoryPath(starts[here].start, steps=(*starts[here].steps, (edge, there)))
            path = replace(path, relevance=score(path))
            if paths[there].relevance < path.relevance if there in paths else len(paths) < paths_max:
                paths[there] = path
                new[there] = None
    return list(new)


def _expanded_score(path: MemoryPath) -> float:
    """Return the weight of a path, times the geometric mean of the strengths of its relations."""
    strength = prod(_STRENGTH[edge.relation] for edge, _ in path.steps) ** (1 / len(path.steps))
    return path.weighted(_DECAY) * strength


def _checked(direction: str) -> str:
    if direction not in DIRECTIONS:
        raise InvalidInput(f"Invalid direction: {direction}", hint=f"Use one of: {', '.join(DIRECTIONS)}.")
    return direction


def _label(content: str) -> str:
    """Return a text for use as a quoted Mermaid label, with special characters escaped."""
    line = " ".join(content.split())
    return line.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
