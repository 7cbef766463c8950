"""Base class of the contexts of toolsets that use memories and documents, which are opened on first use."""

from functools import cached_property

from ..archiver.store.project_table import plain_namespace
from ..core.document import DocumentStats, IndexedDirectory
from ..observe.background.background_indexer import BackgroundIndexer
from ..observe.memory import MemoryCore
from ..search.document_library import DocumentLibrary
from .toolset import ServerConfig, open_component


class MemoryContext:
    """Memories and documents of one Palaver home."""

    def __init__(self, config: ServerConfig) -> None:
        self.config = config

    @cached_property
    def core(self) -> MemoryCore:
        """Memories of the home. Raises `ServerNotReady`."""
        config = self.config
        return open_component(lambda: MemoryCore.open(config.home, config.model, config.make_judge))

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
        config = self.config
        documents = open_component(lambda: DocumentLibrary.open(config.home, config.roots, config.model))
        self.embed_waiting(documents.stats())
        return documents

    def embed_waiting(self, waiting: DocumentStats | IndexedDirectory) -> None:
        """Start a background process that indexes queued files and embeds chunks, if the server may start one."""
        if self.config.background and (waiting.queued or waiting.unembedded):
            self._background_indexer.wake()

    def close(self) -> None:
        """Close the components that were opened."""
        opened = [self.__dict__.pop(name) for name in ("core", "documents") if name in self.__dict__]
        for component in opened:
            component.close()

    @cached_property
    def _background_indexer(self) -> BackgroundIndexer:
        return BackgroundIndexer(self.config.home, self.config.model)
