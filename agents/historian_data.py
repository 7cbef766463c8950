"""Fields of historian's replies. The output schemas are derived from these structs, with names in camel case.

Fields with a default are optional: a reply leaves them out if they have this value.
"""

from msgspec import Struct

from .json_reply import Rows


class HistorianReply(Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """Base class of the replies. `problems` lists the memory files that could not be read."""

    problems: Rows = []


class TypesReply(HistorianReply, frozen=True, kw_only=True):
    """Types of memories."""

    types: Rows
    fallback_type: str
    fallback_description: str


class RememberReply(HistorianReply, frozen=True, kw_only=True):
    """File of a new memory."""

    success: bool
    file_path: str
    memory_type: str
    tags: list[str]
    already_existed: bool = False
    superseded: list[str] = []
    secrets_removed: list[str] = []


class HistorianRecallReply(HistorianReply, frozen=True, kw_only=True):
    """Recalled memories, best first. `weak` contains the nearest memories if none is relevant."""

    memories: Rows
    notice: str = ""
    message: str = ""
    weak: Rows = []
    error: str = ""
    hint: str = ""


class CompoundReply(HistorianReply, frozen=True, kw_only=True):
    """Reply of `memory_compound`: the file of the updated or new memory."""

    success: bool
    file_path: str
    memory_type: str
    created_new: bool
    undo: str = ""
    secrets_removed: list[str] = []


class ForgetReply(HistorianReply, frozen=True, kw_only=True):
    """Reply of `memory_forget`: the candidates of the first call, or the result of the confirmed call."""

    confirm_required: bool = False
    candidates: Rows | None = None
    protected: Rows = []
    message: str = ""
    success: bool | None = None
    deleted_files: int | None = None
    files: list[str] | None = None
    deleted_ids: list[str] = []
    undo: str = ""
    kept: Rows = []
