"""Replies of the fabric tools, as structs from which the output schemas are derived.

Names are in camel case. Fields with a default are optional: a reply leaves them out if they have this value.
"""

from typing import Any, TypeAlias

from msgspec import Struct

from ...archiver.reading.parsing import kinds_of
from ...core.conversation import Trust, show_millisecond
from ...core.memory import MemoryState, StoredMemory
from ...observe.memory import RememberResult
from ...templates.quote import clean
from ..memory_context import uuid_of
from ..toolset import Rows

Object: TypeAlias = dict[str, Any]


class FabricReply(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base class of the replies."""


class CurrentReply(FabricReply, frozen=True):
    """Context of a session."""

    context: Object


class StoreReply(FabricReply, frozen=True):
    """Stored memory, with its layer and the reason for the layer."""

    id: str
    success: bool
    layer: int
    routing: Object
    duplicate: bool = False
    secrets_removed: list[str] = []
    superseded_ids: list[str] = []


class FabricRecallReply(FabricReply, frozen=True):
    """Recalled memories, best first. `message` names the highest similarity if it is below the threshold."""

    results: Rows
    total: int
    message: str = ""


class OrientReply(FabricReply, frozen=True):
    """Time, project, and the time since the last visit.

    `archived` contains the number of unused memories that were archived, and the command that restores them.
    """

    summary: str
    time: Object
    project_path: str
    offline_gap: Object | None
    recent_memories: Rows
    resolved: int | None = None
    resolved_time: Object | None = None
    conversions: Rows = []
    archived: Object | None = None


class CodeSearchReply(FabricReply, frozen=True):
    """Found code, best first. `note` says if the index is incomplete or nothing is similar enough."""

    results: Rows
    index_status: Object
    total: int
    note: str = ""


class GetReply(FabricReply, frozen=True):
    """One memory and its layer."""

    memory: Object
    layer: int


class UpdateReply(FabricReply, frozen=True):
    """Edited memory, or the ID and layer of a promoted memory."""

    success: bool
    memory: Object | None = None
    layer: int | None = None
    memory_id: str = ""
    new_layer: int | None = None


class DeleteReply(FabricReply, frozen=True):
    """Layer of a deleted memory, and the command that restores it."""

    success: bool
    deleted_from: int
    undo: str


class ListReply(FabricReply, frozen=True):
    """Page of memories, or the numbers of memories in each layer. `next_offset` is the offset of the next page."""

    total: int
    memories: Rows | None = None
    limit: int | None = None
    offset: int | None = None
    layer: int | None = None
    next_offset: int | None = None
    l1: int | None = None
    l2: int | None = None
    l3: int | None = None
    pinned: Object | None = None


class SummarizeReply(FabricReply, frozen=True):
    """Summary of archived memories, and the command that restores them."""

    summary_id: str
    summarized_count: int
    summary: str
    layer: int
    undo: str = ""


class EventReply(FabricReply, frozen=True):
    """Memory of an event, and earlier errors like the reported one."""

    processed: bool
    memory_id: str
    triggered_actions: list[str]
    message: str
    duplicate: bool = False
    secrets_removed: list[str] = []
    superseded_ids: list[str] = []
    similar_errors: Rows | None = None
    known_fixes: Rows | None = None


class SetupReply(FabricReply, frozen=True):
    """Changed configuration file, or the entry to add to one."""

    cli: str
    message: str
    success: bool = False
    preview: bool = False
    use_docker: bool | None = None
    snippet: str = ""
    config_file: str = ""
    backup: str = ""


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
