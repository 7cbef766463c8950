"""Context of the Theo tools: memories, documents and code traces, each opened on first use."""

from functools import cached_property

from ...archiver.store.project_table import plain_namespace
from ...core.document import DocumentStats, IndexedDirectory
from ...observe.background.background_indexer import BackgroundIndexer
from ...observe.memory import MemoryCore
from ...observe.traces import CodeTraces
from ...search.document_library import DocumentLibrary
from ..toolset import ServerConfig, open_component


class TheoContext:
    """Memories, documents and code traces of one home.

    `backfilled_to` maps a namespace to the last memory of its latest backfill. The next backfill continues there.
    """

    def __init__(self, config: ServerConfig) -> None:
        self.config = config
        self.backfilled_to: dict[str | None, int] = {}

    @cached_property
    def core(self) -> MemoryCore:
        """Memories of the home. Raises `ServerNotReady`."""
        config = self.config
        return open_component(lambda: MemoryCore.open(config.home, config.model, config.make_judge))

    def namespace(self, named: str, *, claim: bool = False) -> str:
        """Return the namespace for a name in a call.

        The name of the agent's project selects this project, even if other projects have the same name.
        """
        projects, folder = self.core.projects, self.config.project
        if named != plain_namespace(folder):
            return named
        return projects.claim(folder) if claim else projects.namespace(folder)

    @cached_property
    def documents(self) -> DocumentLibrary:
        """Indexed documents. Raises `ServerNotReady`. Opening them embeds chunks that are not embedded yet."""
        config = self.config
        documents = open_component(lambda: DocumentLibrary.open(config.home, config.roots, config.model))
        self.embed_waiting(documents.stats())
        return documents

    def embed_waiting(self, waiting: DocumentStats | IndexedDirectory) -> None:
        """Embed the chunks without vectors in the background, if the server runs a background process."""
        if self.config.background and (waiting.queued or waiting.unembedded):
            self._background_indexer.wake()

    @cached_property
    def _background_indexer(self) -> BackgroundIndexer:
        return BackgroundIndexer(self.config.home, self.config.model)

    @cached_property
    def traces(self) -> CodeTraces:
        """Code traces. Raises `ServerNotReady`."""
        return open_component(lambda: CodeTraces.open(self.config.home))
