"""Context and shared parameters of the fabric tools: memories and documents in the namespaces of three layers."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ...core.conversation import Milliseconds, now
from ...core.errors import InvalidInput, MemoryNotFound
from ...core.home import identity_of, root_of
from ...core.memory import MemoryFilter, StoredMemory, project_namespace, session_namespace
from ...observe.memory import GLOBAL_NAMESPACES
from ...search.archive_search import ArchiveSearch
from ..memory_rows import find_by_uuid
from ..toolset import BUDGET, WHOLE, MemoryContext, ServerConfig, ToolReply, WholeNumber, data_reply, open_component
from .fabric_replies import FabricReply

TTL: Final = 3_600_000
"""Milliseconds until a memory of layer 1 (one session) expires, unless it has its own time-to-live."""
SESSION_MAX: Final = 1_000
"""Maximum number of memories that one session can have in layer 1."""


class FabricContext(MemoryContext):
    """Memories and documents of one home.

    Layer 1 contains the memories of a session, layer 2 those of a project, and layer 3 those of all projects. Tools
    without a session ID use the session of the last call that had one.
    """

    def __init__(self, config: ServerConfig, clock: Callable[[], Milliseconds] = now) -> None:
        super().__init__(config, clock)
        self.clock = clock
        self.decayed_at: Milliseconds = 0
        """Time at which this server last archived unused memories, or 0."""
        self.indexed = set[Path]()
        """Projects whose code this server has indexed."""
        self._session = ""

    @property
    def search(self) -> ArchiveSearch:
        """Search in archived conversations. Raises `ServerNotReady`."""
        return open_component(lambda: self.archive.search)

    def enter(self, session_id: str) -> None:
        """Remember the session ID of a call, for the following calls without one."""
        self._session = session_id

    def folder(self, path: str | None) -> Path:
        """Return the folder of a project, by default the working folder. Raises `InvalidInput` for invalid paths."""
        try:
            folder = (self.config.project / Path(path or "").expanduser()).resolve()
            folder.exists()  # Raises OSError if a name is too long.
        except (RuntimeError, ValueError, OSError):
            raise InvalidInput(f"Invalid projectPath: {path!r}", hint="Give the path of a folder.") from None
        return folder

    def identity(self, folder: Path) -> str:
        """Return the string that identifies a folder's project: its git remote, or else a path."""
        return identity_of(root_of(folder))

    def namespaces(self, layer: int, folder: Path) -> tuple[str, ...]:
        """Return the namespaces whose memories belong to a layer.

        If no call has named a session, layer 1 contains only the memories that were stored without a session ID.
        """
        if layer == 1:
            return tuple(dict.fromkeys((self.session(folder), self._unnamed(folder))))
        return (self.core.projects.namespace(folder),) if layer == 2 else GLOBAL_NAMESPACES

    def target(self, layer: int, folder: Path) -> str:
        """Return the namespace for a new memory of a layer. For layer 2, reserve the namespace for the project."""
        if layer == 1:
            return self.session(folder)
        return self.core.projects.claim(folder) if layer == 2 else "global"

    def session(self, folder: Path) -> str:
        """Return the namespace of the current session, which is the last session that a call named."""
        return session_namespace(self._session) if self._session else self._unnamed(folder)

    def find(self, memory_id: str) -> StoredMemory:
        """Return the memory with a UUID or public ID. Raises `MemoryNotFound` if it is forgotten or expired."""
        try:
            stored = find_by_uuid(self.core, memory_id)
        except InvalidInput:
            raise MemoryNotFound(memory_id) from None
        if not stored.is_valid_at(self.clock()):
            raise MemoryNotFound(memory_id)
        return stored

    def evict(self, newest: StoredMemory) -> None:
        """If the session of `newest` has too many memories, forget the least recently used ones.

        Pinned memories and `newest` are kept.
        """
        where = MemoryFilter(namespaces=(newest.memory.namespace,), valid_at=self.clock())
        excess = self.core.count(where) - SESSION_MAX
        if excess <= 0:
            return
        memories = self.core.page(where, limit=SESSION_MAX)
        unpinned = [stored for stored in memories if stored.key != newest.key and not stored.memory.pinned]
        unpinned.sort(key=lambda stored: (max(stored.accessed or 0, stored.created), stored.key))
        self.core.forget([stored.id for stored in unpinned[:excess]], reason="session is full")

    def reply(self, fields: FabricReply, budget: int = BUDGET, *, quotes: bool = False) -> ToolReply:
        """Return a JSON reply within the budget. With `quotes`, add the notice about quoted text."""
        return data_reply(fields, budget, quotes=quotes)

    def _unnamed(self, folder: Path) -> str:
        """Return the namespace for calls in a project when no call has named a session yet."""
        name = project_namespace(str(folder)).rpartition(":")[2]
        return session_namespace(f"without-id {name} {self.identity(folder)}")


def in_layers(fabric: FabricContext, layers: Sequence[int], folder: Path) -> tuple[str, ...]:
    """Return the namespaces of several layers, or of all layers if none is given."""
    namespaces = [name for layer in layers or (1, 2, 3) for name in fabric.namespaces(layer, folder)]
    return tuple(dict.fromkeys(namespaces))


TypeName: TypeAlias = Literal["code_pattern", "bug_fix", "decision", "convention", "scratchpad", "relationship"]
CliName: TypeAlias = Literal["kimi", "claude", "claude-code", "opencode", "codex", "gemini", "cursor", "generic"]
EventName: TypeAlias = Literal[
    "file_opened",
    "command_executed",
    "error_occurred",
    "decision_made",
    "session_start",
    "session_end",
    "pattern_detected",
    "user_feedback",
]
LayerNumber: TypeAlias = Annotated[Literal[1, 2, 3], WHOLE]
SourceName: TypeAlias = Literal["user_explicit", "ai_inferred", "system_auto"]
Confidence: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Weight: TypeAlias = Annotated[float, Field(ge=1, le=5)]
Similarity: TypeAlias = Annotated[float, Field(ge=0, le=1, description="Minimum similarity")]
Seconds: TypeAlias = Annotated[float, Field(gt=0, le=10 * 365 * 86_400, description="Seconds until it expires")]
Days: TypeAlias = Annotated[float, Field(ge=0, le=36_500, description="Only memories at least this old")]
Text: TypeAlias = Annotated[str, Field(min_length=1)]
SessionId: TypeAlias = Annotated[str, Field(min_length=1, alias="sessionId", description="ID of the session")]
MemoryId: TypeAlias = Annotated[str, Field(alias="memoryId", description="From a reply")]
ProjectPath: TypeAlias = Annotated[
    str | None, Field(alias="projectPath", description="Folder of the project. Default: working folder")
]
Limit: TypeAlias = Annotated[int, Field(ge=1, le=100, description="Maximum number of results"), WHOLE]
Offset: TypeAlias = Annotated[WholeNumber, Field(json_schema_extra={"minimum": 0}, description="Results to skip")]


class _Fields(BaseModel):
    """Object whose JSON field names are in camel case, such as `projectPath`."""

    model_config = ConfigDict(extra="forbid", strict=True, alias_generator=to_camel, serialize_by_alias=True)


class FileContext(_Fields):
    """Lines of a file."""

    path: str
    line_start: WholeNumber | None = None
    line_end: WholeNumber | None = None
    language: str | None = None


class CodeBlock(_Fields):
    """Source code."""

    code: str
    language: str
    file_path: str | None = None


class NewMetadata(_Fields):
    """Metadata of a new memory. Other fields are stored too."""

    model_config = ConfigDict(extra="allow")

    tags: list[str] = []
    title: str | None = None
    confidence: Confidence = 0.8
    source: SourceName = "ai_inferred"
    project_path: str | None = None
    cli_type: str = "generic"
    file_context: FileContext | None = None
    code_block: CodeBlock | None = None
    weight: Weight = 3


class MetadataChange(_Fields):
    """Metadata to change. Other fields are stored too."""

    model_config = ConfigDict(extra="allow")

    tags: list[str] | None = None
    title: str | None = None
    confidence: Confidence | None = None
    source: SourceName | None = None
    project_path: str | None = None
    cli_type: str | None = None
    file_context: FileContext | None = None
    code_block: CodeBlock | None = None
    weight: Weight | None = None


class RecallFilter(_Fields):
    """Conditions for recalled memories."""

    types: list[str] | None = None
    layers: list[LayerNumber] | None = None
    tags: list[str] | None = None
    project_path: str | None = None


class SummaryOptions(_Fields):
    """Length and selection of a summary."""

    target_tokens: Annotated[int, Field(ge=1, le=100_000), WHOLE]
    focus_types: list[str] | None = None
    include_patterns: bool = True
    include_decisions: bool = True


class Event(_Fields):
    """Event in a client, such as a command that was run."""

    type: EventName
    payload: dict[str, Any]
    timestamp: str
    session_id: Text
    cli_type: CliName
    project_path: str | None = None
