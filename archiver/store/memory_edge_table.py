"""Edges: typed relations between two memories. Each pair has at most one edge of each type per direction."""

from collections.abc import Sequence

from msgspec.structs import replace

from ...core.memory import Edge, Relation
from .database import AMONG, Database, Row, listed

_COLUMNS = "source, target, relation, weight, reason, inferred, proposed, id"
_ORPHANED = """WHERE state = 'active' AND (? IS NULL OR namespace = ?)
    AND NOT EXISTS (SELECT 1 FROM memory_edge WHERE source = item)
    AND NOT EXISTS (SELECT 1 FROM memory_edge WHERE target = item)"""


class MemoryEdgeTable:
    """Table of edges between memories."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def put(self, edge: Edge) -> Edge:
        """Store an edge, and return it with its ID. Update an existing edge with the same ends and relation."""
        self._db.run(
            """INSERT INTO memory_edge (source, target, relation, weight, reason, inferred, proposed)
               VALUES (?, ?, ?, ?, ?, ?, ?)
               ON CONFLICT (source, target, relation) DO UPDATE SET weight = excluded.weight,
               reason = excluded.reason, inferred = excluded.inferred, proposed = excluded.proposed""",
            (edge.source, edge.target, edge.relation, edge.weight, edge.reason, int(edge.inferred), int(edge.proposed)),
        )
        key = (edge.source, edge.target, edge.relation)
        sql = "SELECT id FROM memory_edge WHERE source = ? AND target = ? AND relation = ?"
        return replace(edge, id=self._db.number(sql, key))

    def delete(self, numbers: Sequence[int]) -> None:
        """Delete these edges."""
        self._db.run_many("DELETE FROM memory_edge WHERE id = ?", [(number,) for number in numbers])

    def load(self, number: int) -> Edge | None:
        """Return the edge with this ID."""
        row = self._db.one(f"SELECT {_COLUMNS} FROM memory_edge WHERE id = ?", (number,))
        return _edge(row) if row else None

    def outgoing(self, memories: Sequence[int]) -> list[Edge]:
        """Return the edges that begin at these memories, in ID order."""
        return self._at("source", memories)

    def incoming(self, memories: Sequence[int]) -> list[Edge]:
        """Return the edges that end at these memories, in ID order."""
        return self._at("target", memories)

    def contradictions(self) -> list[Edge]:
        """Return the edges which state that two active memories cannot both be true, in ID order.

        These are `contradicts` edges and proposed `supersedes` edges.
        """
        rows = self._db.rows(
            f"""SELECT {_COLUMNS} FROM memory_edge WHERE (relation = ? OR proposed)
                AND source IN (SELECT item FROM memory WHERE state = 'active')
                AND target IN (SELECT item FROM memory WHERE state = 'active') ORDER BY id""",
            (Relation.CONTRADICTS,),
        )
        return [_edge(row) for row in rows]

    def successors(self) -> dict[int, int]:
        """Return, for each superseded memory, the memory that superseded it last."""
        rows = self._db.rows(
            """SELECT target, source FROM memory_edge WHERE relation = ? AND NOT proposed
               AND source IN (SELECT item FROM memory WHERE state <> 'archived') ORDER BY id""",
            (Relation.SUPERSEDES,),
        )
        return dict(rows)

    def orphans(self, namespace: str | None, after: int, limit: int) -> list[int]:
        """Return active memories without edges and with a key above `after`, in ascending order."""
        return self._db.numbers(
            f"SELECT item FROM memory {_ORPHANED} AND item > ? ORDER BY item LIMIT ?",
            (namespace, namespace, after, limit),
        )

    def count_orphans(self, namespace: str | None) -> int:
        """Count the active memories without edges."""
        return self._db.number(f"SELECT count(*) FROM memory {_ORPHANED}", (namespace, namespace))

    def _at(self, end: str, memories: Sequence[int]) -> list[Edge]:
        rows = self._db.rows(f"SELECT {_COLUMNS} FROM memory_edge WHERE {end} {AMONG} ORDER BY id", (listed(memories),))
        return [_edge(row) for row in rows]


def _edge(row: Row) -> Edge:
    source, target, relation, weight, reason, inferred, proposed, number = row
    return Edge(source, target, Relation(relation), weight, reason, bool(inferred), bool(proposed), number)
