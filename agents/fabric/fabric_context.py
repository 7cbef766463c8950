"""Context of the fabric tools: memories and documents, with the namespaces of the three layers."""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from ...core.clock import now
from ...core.conversation import Milliseconds
from ...core.errors import InvalidInput, MemoryNotFound
from ...core.memory import StoredMemory, project_namespace, session_namespace
from ...core.memory_filter import MemoryFilter
from ...core.project import identity_of, root_of
from ...observe.memory import GLOBAL_NAMESPACES, MemoryCore
from ...search.archive_search import ArchiveSearch
from ..json_reply import BUDGET, data_reply
from ..memory_context import MemoryContext
from ..memory_uuid import find_by_uuid
from ..toolset import ServerConfig, ToolReply, open_component
from .fabric_data import FabricReply

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
        super().__init__(config)
        self.clock = clock
        self.decayed_at: Milliseconds = 0
        """Time at which this server last archived unused memories, or 0."""
        self.indexed = set[Path]()
        """Projects whose code this server has indexed."""
        self._session = ""

    @cached_property
    def core(self) -> MemoryCore:
        """Memories of the home. Raises `ServerNotReady`."""
        config = self.config
        return open_component(lambda: MemoryCore.open(config.home, config.model, config.make_judge, self.clock))

    @cached_property
    def archive(self) -> ArchiveSearch:
        """Search in archived conversations. Raises `ServerNotReady`."""
        return open_component(lambda: ArchiveSearch(self.config.home, self.config.model))

    def close(self) -> None:
        """Close the components that were opened."""
        if "archive" in self.__dict__:
            self.__dict__.pop("archive").close()
        super().close()

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
        wanted = MemoryFilter(namespaces=(newest.memory.namespace,), valid_at=self.clock())
        excess = self.core.count(wanted) - SESSION_MAX
        if excess <= 0:
            return
        stored = [each for each in self.core.page(wanted, limit=SESSION_MAX) if each.key != newest.key]
        unpinned = [each for each in stored if not each.memory.pinned]
        unpinned.sort(key=lambda each: (max(each.accessed or 0, each.created), each.key))
        self.core.forget([each.id for each in unpinned[:excess]], reason="session is full")

    def reply(self, fields: FabricReply, budget: int = BUDGET, *, quotes: bool = False) -> ToolReply:
        """Return a JSON reply within the budget. With `quotes`, add the notice about quoted text."""
        return data_reply(fields, budget, quotes=quotes)

    def _unnamed(self, folder: Path) -> str:
        """Return the namespace for calls in a project when no call has named a session yet."""
        name = project_namespace(str(folder)).rpartition(":")[2]
        return session_namespace(f"without-id {name} {self.identity(folder)}")


def in_layers(fabric: FabricContext, layers: Sequence[int], folder: Path) -> tuple[str, ...]:
    """Return the namespaces of several layers, or of all layers if none is given."""
    found = [name for layer in layers or (1, 2, 3) for name in fabric.namespaces(layer, folder)]
    return tuple(dict.fromkeys(found))
