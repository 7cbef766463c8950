"""Theo's envelope: every reply is one JSON object that says whether the call succeeded."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...core.clock import show_instant
from ...core.conversation import Milliseconds
from ...core.memory import Edge, StoredMemory
from ...core.origin import Trust
from ...observe.memory import MemoryCore
from ...templates.quote import clean
from ...templates.truncation import fit_json, json_cost
from ..envelope import NOTICE, whole
from ..toolset import Reply

BUDGET: Final = 10_000
"""Token limit of a reply whose call names no limit."""
_HINT: Final = "Truncated to fit: ask for less, or use narrower filters."


def done(data: Mapping[str, Any]) -> Reply:
    """Return a success, `{"success": true, "data": {…}}`, truncated to `BUDGET` tokens."""
    return plain({"data": data})


def budgeted(data: Mapping[str, Any]) -> Reply:
    """Return a success of a call that limits its own size by a count or a budget; it is never truncated.

    Such a reply recalls stored text, so it has the notice that says so.
    """
    return whole({"success": True, "data": data, **NOTICE})


def plain(fields: Mapping[str, Any]) -> Reply:
    """Return a success whose fields are beside `success`, truncated to `BUDGET` tokens."""
    return whole(truncated({"success": True, **fields}))


def truncated(envelope: Mapping[str, Any], budget: int = BUDGET) -> dict[str, Any]:
    """Return the envelope as it is if it fits, else a shorter one with `truncated`. Totals still count everything."""
    if json_cost(envelope) <= budget:
        return dict(envelope)
    marked = {"truncated": True, "hint": _HINT}
    data = {"data": {**envelope["data"], **marked}} if "data" in envelope else marked
    return fit_json({**envelope, **data}, budget)


def instant(at: Milliseconds | None) -> str | None:
    """A time as the page writes it, such as 2026-01-26T12:00:00Z."""
    return None if at is None else show_instant(at)


def cosine(similarity: float | None) -> float | None:
    """A true cosine as it is told; None where none was compared."""
    return None if similarity is None else round(similarity, 4)


def memory_rows(core: MemoryCore, memories: Sequence[StoredMemory]) -> list[dict[str, Any]]:
    """Return the fields of each memory that every list has, with the ids of what superseded it or may have."""
    edges = core.graph.superseding(memories)
    return [_fields(held, [edge for edge in edges if edge.target == held.key]) for held in memories]


def _fields(held: StoredMemory, edges: Sequence[Edge]) -> dict[str, Any]:
    done = [edge.source_id for edge in edges if not edge.proposed]
    proposed = [edge.source_id for edge in edges if edge.proposed]
    return {
        "id": held.id,
        "content": clean(held.memory.content),
        "memory_type": held.memory.type,
        "namespace": held.memory.namespace,
        "confidence": held.stats.confidence,
        "importance": held.memory.importance,
        **({"untrusted": True} if held.memory.origin.trust is Trust.LOW else {}),
        "origin": held.memory.origin,
        **({"superseded_by": done} if done else {}),
        **({"proposed_superseded_by": proposed} if proposed else {}),
    }
