"""What Theo's tools work with: each part is opened when the first tool asks for it."""

from functools import cached_property

from ...archiver.store.project_table import plain_namespace
from ...core.document import DocumentStats, IndexedDirectory
from ...observe.background.background_indexer import BackgroundIndexer
from ...observe.memory import MemoryCore
from ...observe.traces import CodeTraces
from ...search.document_library import DocumentLibrary
from ..desk import Place, opened


class TheoDesk:
    """The memory core, the documents and the traces of one home. `linked_to` is where backfilling goes on."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.linked_to: dict[str | None, int] = {}

    @cached_property
    def core(self) -> MemoryCore:
        """What is held to be true."""
        return opened(lambda: MemoryCore.open(self.place.home, self.place.model, self.place.judging))

    def namespace(self, named: str, *, claim: bool = False) -> str:
        """Return the namespace that an agent means: the name of the folder it works in means the project there.

        Another project can be called the same; its memories are its own.
        """
        projects, folder = self.core.projects, self.place.project
        if named != plain_namespace(folder):
            return named
        return projects.claim(folder) if claim else projects.namespace(folder)

    @cached_property
    def documents(self) -> DocumentLibrary:
        """Return the indexed documents; what waits since an earlier server is embedded in the background."""
        documents = opened(lambda: DocumentLibrary.open(self.place.home, self.place.roots, self.place.model))
        self.embed_waiting(documents.stats())
        return documents

    def embed_waiting(self, waiting: DocumentStats | IndexedDirectory) -> None:
        """Start background rounds if files or chunks wait, and the server has a background."""
        if self.place.background and (waiting.queued or waiting.unembedded):
            self._background_indexer.wake()

    @cached_property
    def _background_indexer(self) -> BackgroundIndexer:
        return BackgroundIndexer(self.place.home, self.place.model)

    @cached_property
    def traces(self) -> CodeTraces:
        """Which lines agents wrote."""
        return opened(lambda: CodeTraces.open(self.place.home))
