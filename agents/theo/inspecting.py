"""Theo's inspection: memories counted and listed."""

from typing import Annotated

from pydantic import Field

from ...core.memory_filter import MemoryOrder, order_of
from ...observe.memory import LIST_MAX
from ..toolset import Reply, WholeNumber
from .arguments import MemoryType, Namespace, Offset, wanted
from .desk import TheoDesk
from .envelope import budgeted, done, instant, memory_rows


def memory_count(desk: TheoDesk, namespace: Namespace = None, memory_type: MemoryType = None) -> Reply:
    """Count memories."""
    count = desk.core.count(wanted(desk.core, namespace, memory_type))
    return done({"count": count, "filters": {"namespace": namespace, "memory_type": memory_type}})


def memory_list(
    desk: TheoDesk,
    namespace: Namespace = None,
    memory_type: MemoryType = None,
    limit: Annotated[WholeNumber, Field(description="Maximum number of results, 1-1000")] = 100,
    offset: Offset = 0,
    order_by: Annotated[str, Field(description=", ".join(MemoryOrder))] = "created_at",
    descending: Annotated[bool, Field(description="Largest or newest first")] = True,
) -> Reply:
    """List memories, the newest first, a page at a time; `next_offset` is the offset of the next page."""
    core, chosen = desk.core, wanted(desk.core, namespace, memory_type)
    order = order_of(order_by)
    found = core.page(chosen, order=order, descending=descending, limit=limit, offset=offset)
    total = core.count(chosen)
    rows = [
        {
            **fields,
            "created_at": instant(held.created),
            "updated_at": instant(held.updated),
            "accessed_at": instant(held.accessed),
            "metadata": held.memory.metadata,
        }
        for held, fields in zip(found, memory_rows(core, found), strict=True)
    ]
    end = offset + len(rows)
    page = {"limit": min(limit, LIST_MAX), "offset": offset, "has_more": end < total}
    return budgeted({"memories": rows, "total": total, **page, "next_offset": end if end < total else None})


def memory_list_namespaces(desk: TheoDesk) -> Reply:
    """List the namespaces with how many memories each has."""
    counted = desk.core.count_by("namespace")
    rows = [{"namespace": name, "count": count} for name, count in counted.items()]
    return done({"namespaces": rows, "total_namespaces": len(rows), "total_memories": sum(counted.values())})
