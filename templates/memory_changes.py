"""What each event in the history of a memory changed, and what the memory said until then."""

from collections.abc import Iterator, Sequence
from typing import Any

import orjson
from msgspec.structs import asdict

from ..core.memory import MemoryEvent, StoredMemory


def changes(held: StoredMemory, events: Sequence[MemoryEvent]) -> Iterator[tuple[MemoryEvent, str, str]]:
    """Each event, newest first as given, with the names of what it changed and what was said before where that changed.

    `events` are the last ones of this memory, none left out.
    """
    after = _plain({**asdict(held.memory), "confidence": held.stats.confidence})
    for event in events:
        if not event.before:
            yield event, "", ""
            continue
        before: dict[str, Any] = orjson.loads(event.before)
        names = [name for name in after if name in before and before[name] != after[name]]
        yield event, ", ".join(names), str(before["content"]) if "content" in names else ""
        after = before


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """As an event keeps them."""
    told: dict[str, Any] = orjson.loads(orjson.dumps(values))
    return told


def undoing(memory_ids: Sequence[str]) -> str:
    """The command that holds these memories again, or takes back their last edits."""
    return f"palaver memories undo {' '.join(memory_ids)}"
