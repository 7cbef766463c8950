"""Base class of the contexts of toolsets that use memories and documents, which are opened on first use.

UUIDs of memories. The toolsets rag and fabric show them instead of IDs such as `mem_7`, which they also accept.
"""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ..archiver.store.session_table import plain_namespace
from ..core import ids
from ..core.conversation import Milliseconds, now
from ..core.document import DocumentStats, IndexedDirectory
from ..core.errors import InvalidInput, MemoryNotFound
from ..core.memory import StoredMemory
from ..observe.memory import MemoryCore
from ..search.document_library import DocumentLibrary
from .toolset import ServerConfig, open_component

if TYPE_CHECKING:
    from ..observe.background.index_worker import BackgroundIndexer


class MemoryContext:
    """Memories and documents of one Palaver home."""

    def __init__(self, config: ServerConfig, clock: Callable[[], Milliseconds] = now) -> None:
        self.config, self.archive = config, config.archive.another(clock)

    @property
    def core(self) -> MemoryCore:
        """Memories of the home. Raises `ServerNotReady`."""
        return open_component(lambda: self.archive.memories)

    def namespace(self, named: str, *, claim: bool = False) -> str:
        """Return the namespace in the database for the namespace that a tool call names.

        `project:NAME` with the name of the agent's project selects this project, even if other projects have the same
        name.
        """
        if named != plain_namespace(self.config.project):
            return named
        return self.own_namespace(claim=claim)

    def own_namespace(self, *, claim: bool = False) -> str:
        """Return the namespace of the agent's project. With `claim`, reserve it for this project."""
        projects, folder = self.core.projects, self.config.project
        return projects.claim(folder) if claim else projects.namespace(folder)

    @cached_property
    def documents(self) -> DocumentLibrary:
        """Indexed documents. The first access starts embedding chunks without vectors. Raises `ServerNotReady`."""
        documents = open_component(lambda: self.archive.documents(self.config.roots))
        self.embed_waiting(documents.stats())
        return documents

    def embed_waiting(self, waiting: DocumentStats | IndexedDirectory) -> None:
        """Start a background process that indexes queued files and embeds chunks, if the server may start one."""
        if self.config.background and (waiting.queued or waiting.unembedded):
            self._background_indexer.wake()

    def close(self) -> None:
        """Close the components that were opened."""
        self.archive.close()
        if "documents" in self.__dict__:
            self.__dict__.pop("documents").close()

    @cached_property
    def _background_indexer(self) -> "BackgroundIndexer":
        from ..observe.background.index_worker import BackgroundIndexer  # loads the ingest pipeline

        return BackgroundIndexer(self.archive.home, self.archive.config.model)


_VERSION: Final = 8 << 76
"""Version of UUIDs with a custom layout (RFC 9562, section 5.8)."""
_VARIANT: Final = 2 << 62
_KEY: Final = (1 << 62) - 1


def uuid_of(stored: StoredMemory) -> str:
    """Return the UUID of a memory: 48 bits of its creation time in milliseconds, and 62 bits of its key."""
    return str(UUID(int=(stored.created & (1 << 48) - 1) << 80 | _VERSION | _VARIANT | stored.key & _KEY))


def find_by_uuid(core: MemoryCore, memory_id: str) -> StoredMemory:
    """Return the memory with this UUID or public ID, even if it is forgotten.

    Raises:
        MemoryNotFound: No memory has this ID.
        InvalidInput: The text is neither a UUID nor a public ID.
    """
    if ids.canonical(memory_id):
        return core.get(memory_id)
    try:
        known = UUID(memory_id)
    except ValueError:
        raise InvalidInput("memory_id must be a UUID", hint="Use a memory_id from a reply of this server.") from None
    stored = core.get(ids.show("memory", known.int & _KEY))
    if uuid_of(stored) != str(known):
        raise MemoryNotFound(memory_id)
    return stored
