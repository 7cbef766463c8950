"""Formatting of changes to memories: history, undo command, and superseding memories."""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from msgspec.structs import asdict

from ..core.memory import Edge, MemoryEvent, StoredMemory


def changes(stored: StoredMemory, events: Sequence[MemoryEvent]) -> Iterator[tuple[MemoryEvent, str, str]]:
    """Yield each event with the names of the fields that it changed, and the previous content if the content changed.

    `events` are the latest events of this memory, newest first and without gaps.
    """
    # Convert through JSON, because events store the earlier values as JSON.
    after: dict[str, Any] = orjson.loads(orjson.dumps({**asdict(stored.memory), "confidence": stored.stats.confidence}))
    for event in events:
        if not event.before:
            yield event, "", ""
            continue
        before: dict[str, Any] = orjson.loads(event.before)
        names = [name for name in after if name in before and before[name] != after[name]]
        yield event, ", ".join(names), str(before["content"]) if "content" in names else ""
        after = before


def undo_command(memory_ids: Sequence[str]) -> str:
    """Return the command that restores these memories or undoes their last edits."""
    return f"palaver memories undo {' '.join(memory_ids)}"


def supersession_fields(memories: Sequence[StoredMemory], edges: Sequence[Edge]) -> list[dict[str, list[str]]]:
    """Return, for each memory, the IDs of memories that superseded it or are proposed to supersede it.

    Fields without IDs are omitted. `edges` are the `supersedes` edges that end at these memories.
    """
    fields: list[dict[str, list[str]]] = []
    for stored in memories:
        own = [edge for edge in edges if edge.target == stored.key]
        applied = [edge.source_id for edge in own if not edge.proposed]
        proposed = [edge.source_id for edge in own if edge.proposed]
        named = {"superseded_by": applied, "proposed_superseded_by": proposed}
        fields.append({name: ids for name, ids in named.items() if ids})
    return fields
