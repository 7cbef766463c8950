"""Replies of the fabric tools, as structs from which the output schemas are derived.

Names are in camel case. Fields with a default are optional: a reply leaves them out if they have this value.
"""

from typing import Any, TypeAlias

from msgspec import Struct

from ...archiver.redaction import kinds_of
from ...observe.memory import RememberResult
from ..memory_rows import uuid_of
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


def stored_fields(remembered: RememberResult) -> dict[str, Any]:
    """Return the reply's fields about a stored memory: duplicate, removed secrets, and superseded memories."""
    return {
        "duplicate": remembered.duplicate,
        "secrets_removed": kinds_of(remembered.stored.memory),
        "superseded_ids": [uuid_of(old) for old in remembered.superseded],
    }
