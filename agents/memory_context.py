"""Base class of the contexts of toolsets that use memories and documents, which are opened on first use."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from ..archiver.store.session_table import plain_namespace
from ..core.conversation import Milliseconds, now
from ..core.document import DocumentStats, IndexedDirectory
from ..core.memory import PROJECT
from ..observe.memory import MemoryCore
from ..search.document_library import DocumentLibrary
from .toolset import ServerConfig, open_component

if TYPE_CHECKING:
    from ..observe.background.index_worker import BackgroundIndexer


Name = TypeVar("Name", str, str | None)


class MemoryContext:
    """Memories and documents of one Palaver home."""

    def __init__(self, config: ServerConfig, clock: Callable[[], Milliseconds] = now) -> None:
        self.config, self.archive = config, config.archive.another(clock)

    @property
    def core(self) -> MemoryCore:
        """Memories of the home. Raises `ServerNotReady`."""
        return open_component(lambda: self.archive.memories)

    def namespace(self, name: Name, *, claim: bool = False) -> Name:
        """Return the namespace in the database for the namespace that a tool call names, if it names one.

        `project:NAME` with the name of the agent's project selects this project, even if other projects have the same
        name.
        """
        if name is None or not name.startswith(PROJECT) or name != plain_namespace(self.config.project):
            return name
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
