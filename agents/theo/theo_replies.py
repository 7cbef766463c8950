"""Replies of the Theo toolset, each a JSON object with `success` and `data`."""

from collections.abc import Sequence

from msgspec import Struct, defstruct, to_builtins

from ...core.clock import show_instant
from ...core.conversation import Milliseconds
from ...core.memory import StoredMemory
from ...core.origin import Trust
from ...observe.memory import MemoryCore
from ...templates.memory_changes import supersession_fields
from ...templates.quote import clean
from ..json_reply import NOTICE, Rows, data_reply, json_reply
from ..toolset import ToolReply


def success_of(data: type[Struct]) -> type[Struct]:
    """Return the type of a successful reply whose field `data` has the type `data`."""
    return defstruct(f"{data.__name__}Success", [("success", bool), ("data", data)])


def success_reply(data: Struct, *, quotes: bool = False) -> ToolReply:
    """Return `{"success": true, "data": {…}}`, truncated to `BUDGET` tokens. With `quotes`, add the notice."""
    return data_reply({"success": True, "data": data}, quotes=quotes)


def limited_reply(data: Struct) -> ToolReply:
    """Return a success reply with the notice about quoted text. It is not truncated: the caller limits its length."""
    return json_reply({"success": True, "data": to_builtins(data), **NOTICE})


def instant(at: Milliseconds | None) -> str | None:
    """Return a time as ISO 8601, such as 2026-01-26T12:00:00Z, or None if there is no time."""
    return None if at is None else show_instant(at)


def rounded(similarity: float | None) -> float | None:
    """Return the similarity rounded to four decimals, or None if there is none."""
    return None if similarity is None else round(similarity, 4)


def memory_rows(core: MemoryCore, memories: Sequence[StoredMemory]) -> Rows:
    """Return one row per memory, with the fields that all lists of memories have in common."""
    superseded = supersession_fields(memories, core.graph.superseding(memories))
    return [
        {
            "id": stored.id,
            "content": clean(stored.memory.content),
            "memory_type": stored.memory.type,
            "namespace": stored.memory.namespace,
            "confidence": stored.stats.confidence,
            "importance": stored.memory.importance,
            **({"untrusted": True} if stored.memory.origin.trust is Trust.LOW else {}),
            "origin": stored.memory.origin,
            **fields,
        }
        for stored, fields in zip(memories, superseded, strict=True)
    ]
