"""The graph of memories: edges drawn and removed, what lies around a memory, and links for what has none."""

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ...archiver.store import Store
from ...core import ids
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput
from ...core.memory import Edge, Relation, StoredMemory
from ...search.rank.memory_finder import MemoryFinder
from .comparing import Comparing, edge_to
from .judging import OfflineJudge
from .lookup import held_memory, live_edges
from .secrecy import Secrecy
from .superseding import release, replacements, supersede

DEPTH_MAX = 10
_PREVIEW = 150
DIRECTIONS = ("outgoing", "incoming", "both")


class GraphNode(Struct, frozen=True):
    """Memory in a graph. `content` has at most 150 characters, `depth` counts the fewest edges.

    `relevance` is that of the best path.
    """

    id: str
    type: str
    content: str
    depth: int
    relevance: float


class GraphPath(Struct, frozen=True):
    """Path of the highest relevance from the origin to a memory: ids from the origin on."""

    ids: tuple[str, ...]
    relevance: float


class Neighbourhood(Struct, frozen=True):
    """What lies around a memory: nodes by depth, the edges between them, the best path to each."""

    origin: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[Edge, ...]
    paths: tuple[GraphPath, ...]

    @property
    def depth(self) -> int:
        """How deep it really goes."""
        return max(node.depth for node in self.nodes)

    def mermaid(self) -> str:
        """The graph as a Mermaid flowchart; quotes and brackets in memories cannot break it."""
        rows = [f'    {node.id}["{_label(node.content)}"]' for node in self.nodes]
        arrows = [f"    {edge.source_id} -->|{_named(edge)}| {edge.target_id}" for edge in self.edges]
        return "\n".join(["graph TD", *rows, *arrows])


class Backfilled(Struct, frozen=True):
    """What linking the unlinked did. `attempted_to` is where the next call goes on, so that none is tried twice."""

    initial_orphans: int
    processed: int
    edges_created: int
    remaining_orphans: int
    attempted_to: int


class _Walk(Struct):
    """State of a breadth-first search: the fewest edges, the best path and its relevance for each memory reached."""

    direction: str
    relations: Collection[Relation]
    decay: float
    depth: dict[int, int]
    best: dict[int, tuple[float, tuple[int, ...]]]
    edges: dict[int, Edge] = field(default_factory=dict[int, Edge])


class Graph:
    """Edges between memories."""

    def __init__(
        self,
        store: Store,
        finder: MemoryFinder,
        secrecy: Secrecy,
        clock: Callable[[], Milliseconds],
    ) -> None:
        self._store, self._secrecy, self._clock = store, secrecy, clock
        # Hundreds of memories are linked in one call: nobody waits for a language model about each.
        self._comparing = Comparing(finder, OfflineJudge(), clock)

    def relate(self, source: str, target: str, relation: Relation, weight: float = 1.0, reason: str = "") -> Edge:
        """Draw an edge, or give an existing one this weight and reason. Raises `MemoryNotFound` or `InvalidInput`.

        `supersedes` marks the target as superseded, unless it is a golden rule: then the edge is only proposed.
        """
        if not 0 <= weight <= 1:
            raise InvalidInput(f"Invalid weight: {weight}", hint="Give a number from 0.0 to 1.0.")
        with self._store.transaction():
            one, other = held_memory(self._store, source), held_memory(self._store, target)
            if one.key == other.key:
                raise InvalidInput(f"A memory cannot be related to itself: {source}", hint="Give two different ids.")
            edge = Edge(one.key, other.key, relation, weight, self._secrecy.text(reason))
            if relation is Relation.SUPERSEDES:
                return supersede(self._store, one, other, edge, self._clock())
            number, new = self._store.memory_edges.add(edge)
            edge = replace(edge, id=number)
            if not new:
                self._store.memory_edges.rewrite(edge)
            return edge

    def forget_edge(self, number: int) -> list[int]:
        """Remove one edge; its id, or nothing where there is none.

        With its last `supersedes` edge gone, a memory regains its importance, confidence and state.
        """
        return self._forget([edge] if (edge := self._store.memory_edges.load(number)) else [])

    def forget_edges_of(self, memory_id: str, direction: str = "both", relation: Relation | None = None) -> list[int]:
        """Remove the edges of a memory; their ids. Raises `MemoryNotFound` or `InvalidInput`."""
        key = held_memory(self._store, memory_id).key
        return self._forget(self._edges([key], _direction(direction), [relation] if relation else []))

    def forget_edges_between(self, source: str, target: str, relation: Relation | None = None) -> list[int]:
        """Remove the edges from one memory to another; their ids. Raises `MemoryNotFound`."""
        one, other = held_memory(self._store, source), held_memory(self._store, target)
        edges = self._edges([one.key], "outgoing", [relation] if relation else [])
        return self._forget([edge for edge in edges if edge.target == other.key])

    def inspect(
        self,
        memory_id: str,
        *,
        depth: int = 2,
        direction: str = "both",
        relations: Collection[Relation] = (),
        decay: float = 0.7,
    ) -> Neighbourhood:
        """What lies around a memory, up to `depth` edges away; raises `MemoryNotFound` or `InvalidInput`.

        The relevance of a path is the product of its edges' weights times `decay` for each edge.
        """
        if not 0 <= depth <= DEPTH_MAX:
            raise InvalidInput(f"Invalid depth: {depth}", hint=f"Give a number from 0 to {DEPTH_MAX}.")
        if not 0 <= decay <= 1:
            raise InvalidInput(f"Invalid decay factor: {decay}", hint="Give a number from 0.0 to 1.0.")
        origin = held_memory(self._store, memory_id)
        start: dict[int, tuple[float, tuple[int, ...]]] = {origin.key: (1.0, (origin.key,))}
        walk = _Walk(_direction(direction), relations, decay, {origin.key: 0}, start)
        frontier = [origin.key]
        for level in range(1, depth + 1):
            frontier = self._step(walk, frontier, level)
        return self._neighbourhood(origin, walk)

    def replacements(self, keys: Sequence[int]) -> list[Edge]:
        """Return the edges that supersede one of these memories, or are proposed to."""
        return replacements(self._store, *keys)

    def neighbours(self, keys: Sequence[int]) -> list[Edge]:
        """Every edge that touches one of these memories, by key."""
        return self._edges(keys, "both", [])

    def backfill(
        self,
        namespace: str | None = None,
        *,
        batch_size: int = 50,
        limit: int = 500,
        after: int = 0,
        dry_run: bool = False,
    ) -> Backfilled:
        """Look for what is near to memories that no edge touches, and link them, oldest first.

        `after` is the `attempted_to` of the call before: orphans that nothing is near to are not tried for ever.
        """
        before, done, drawn = self._store.memory_edges.count_orphans(namespace), 0, 0
        while done < limit:
            batch = self._store.memory_edges.orphans(namespace, after, min(batch_size, limit - done))
            if not batch:
                break
            drawn += self._link(list(self._store.memories.load(batch).values()), dry_run=dry_run)
            done, after = done + len(batch), batch[-1]
        remaining = self._store.memory_edges.count_orphans(namespace)
        return Backfilled(before, done, drawn, remaining, after)

    def _link(self, orphans: Sequence[StoredMemory], *, dry_run: bool) -> int:
        """Draw the edges of these; how many are new."""
        found = [
            edge
            for held in orphans
            for each in self._comparing.with_held(held.memory, held=held)
            if (edge := edge_to(held.key, each)) is not None
        ]
        # An orphan may be the older one of a pair: what disagrees is linked, and nothing is put away by this.
        drawn = [
            replace(each, relation=Relation.CONTRADICTS) if each.relation is Relation.SUPERSEDES else each
            for each in found
        ]
        if dry_run:
            return len({frozenset((each.source, each.target)) for each in drawn})
        with self._store.transaction():
            return sum(self._draw(each) for each in drawn)

    def _draw(self, drawn: Edge) -> bool:
        """Draw an edge unless the same stands there the other way round; whether it is new."""
        back = self._edges([drawn.target], "outgoing", [drawn.relation])
        return not any(each.target == drawn.source for each in back) and self._store.memory_edges.add(drawn)[1]

    def _forget(self, edges: Sequence[Edge]) -> list[int]:
        numbers = sorted(edge.id for edge in edges)
        with self._store.transaction():
            self._store.memory_edges.delete(numbers)
            release(self._store, edges, self._clock())
        return numbers

    def _edges(self, keys: Sequence[int], direction: str, relations: Collection[Relation]) -> list[Edge]:
        found: dict[int, Edge] = {}
        if direction != "incoming":
            found.update((edge.id, edge) for edge in self._store.memory_edges.leaving(keys))
        if direction != "outgoing":
            found.update((edge.id, edge) for edge in self._store.memory_edges.reaching(keys))
        return [edge for edge in found.values() if not relations or edge.relation in relations]

    def _step(self, walk: _Walk, frontier: Sequence[int], level: int) -> list[int]:
        """Follow the edges of these memories; return those that are new or have a better path."""
        at = {key: walk.best[key] for key in frontier}
        new: dict[int, None] = {}
        for edge in live_edges(self._store, self._edges(frontier, walk.direction, walk.relations)):
            walk.edges[edge.id] = edge
            for here, there in ((edge.source, edge.target), (edge.target, edge.source)):
                allowed = walk.direction == "both" or (here == edge.source) == (walk.direction == "outgoing")
                if here not in at or not allowed:
                    continue
                relevance, path = at[here][0] * edge.weight * walk.decay, (*at[here][1], there)
                if there not in walk.best or relevance > walk.best[there][0]:
                    walk.depth.setdefault(there, level)
                    walk.best[there] = relevance, path
                    new[there] = None
        return list(new)

    def _neighbourhood(self, origin: StoredMemory, walk: _Walk) -> Neighbourhood:
        previews = self._store.memories.previews(list(walk.depth), _PREVIEW)
        nodes = [
            GraphNode(_id(key), *previews[key], depth, round(walk.best[key][0], 4))
            for key, depth in walk.depth.items()
            if key in previews
        ]
        paths = [
            GraphPath(tuple(map(_id, path)), round(relevance, 4))
            for key, (relevance, path) in walk.best.items()
            if key != origin.key
        ]
        edges = (edge for edge in walk.edges.values() if edge.source in walk.depth and edge.target in walk.depth)
        return Neighbourhood(
            origin.id,
            tuple(nodes),
            tuple(sorted(edges, key=lambda edge: edge.id)),
            tuple(sorted(paths, key=lambda path: -path.relevance)),
        )


def relation_of(name: str) -> Relation:
    """The relation of this name; raises `InvalidInput`."""
    try:
        return Relation(name)
    except ValueError:
        raise InvalidInput(f"Invalid relation: {name}", hint=f"Use one of: {', '.join(Relation)}.") from None


def _direction(name: str) -> str:
    if name not in DIRECTIONS:
        raise InvalidInput(f"Invalid direction: {name}", hint=f"Use one of: {', '.join(DIRECTIONS)}.")
    return name


def _named(edge: Edge) -> str:
    return f"proposed {edge.relation}" if edge.proposed else edge.relation


def _id(key: int) -> str:
    return ids.show("memory", key)


def _label(content: str) -> str:
    """Text inside Mermaid's quotes: its own quotes, brackets and line ends as entities or blanks."""
    line = " ".join(content.split())
    return line.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
