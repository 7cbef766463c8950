"""Parts of the fabric toolset's replies that describe memories."""

from typing import Any

from ...archiver.reading.secrets_report import kinds_of
from ...core.clock import show_millisecond
from ...core.memory import MemoryState, StoredMemory
from ...core.origin import Trust
from ...observe.memory import RememberResult
from ...templates.quote import clean
from ..memory_uuid import uuid_of


def memory_row(stored: StoredMemory) -> dict[str, Any]:
    """Return the fields of a memory, with times in milliseconds."""
    memory = stored.memory
    row = {
        "id": uuid_of(stored),
        "type": memory.type,
        "content": clean(memory.content),
        "metadata": metadata_of(stored),
        "tags": list(memory.tags),
        "pinned": memory.pinned,
        "createdAt": stored.created,
        "updatedAt": stored.updated,
        "accessCount": stored.accesses,
    }
    return row | _marks(stored)


def dated_row(stored: StoredMemory) -> dict[str, Any]:
    """Return the fields of a memory in a context or a search result, with times in ISO 8601."""
    row = {
        "id": uuid_of(stored),
        "type": stored.memory.type,
        "content": clean(stored.memory.content),
        "metadata": metadata_of(stored),
        "createdAt": show_millisecond(stored.created),
        "updatedAt": show_millisecond(stored.updated),
    }
    return row | _marks(stored)


def metadata_of(stored: StoredMemory) -> dict[str, Any]:
    """Return the metadata of a memory, including tags, title, source, project path and weight."""
    memory = stored.memory
    optional = {"title": memory.title, "source": memory.source, "projectPath": memory.project}
    known = {name: value for name, value in optional.items() if value}
    return {**memory.metadata, "tags": list(memory.tags), **known, "weight": memory.weight}


def stored_fields(remembered: RememberResult) -> dict[str, Any]:
    """Return the reply's fields about a stored memory: duplicate, removed secrets, and superseded memories."""
    return {
        "duplicate": remembered.duplicate,
        "secrets_removed": kinds_of(remembered.stored.memory),
        "superseded_ids": [uuid_of(each) for each in remembered.superseded],
    }


def _marks(stored: StoredMemory) -> dict[str, Any]:
    """Return `untrusted` for a memory with low trust, and `superseded` for a memory that was replaced."""
    return {
        **({"untrusted": True} if stored.memory.origin.trust is Trust.LOW else {}),
        **({"superseded": True} if stored.state is MemoryState.SUPERSEDED else {}),
    }
