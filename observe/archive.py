"""Front door of one home: search, memories, documents and deletions, each opened on first use."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ..core.config import Config
from ..core.resources import Closing

if TYPE_CHECKING:
    from ..archiver.store import Store
    from ..core.home import Home
    from ..search.archive_search import ArchiveSearch
    from ..search.document_library import DocumentLibrary
    from .deletion.deleter import Deleter
    from .memory import MemoryCore
    from .memory.contradictions import JudgeFactory
    from .memory_review import MemoryReview
    from .pipeline import Pipeline
    from .traces.attribution import CodeTraces


class Archive(Closing):
    """Archive of one home, for one thread. Components are imported and opened on first use.

    `close` closes them. Later uses open them again.
    """

    def __init__(self, home: Home, config: Config | None = None, make_judge: JudgeFactory | None = None) -> None:
        """Prepare an archive.

        Args:
            home: Folder with the data.
            config: Settings. By default, they are read from the home.
            make_judge: Factory of the model that judges contradictions of memories. By default, rules judge.
        """
        self.home, self._make_judge = home, make_judge
        self.config = Config.read(home.config) if config is None else config

    def another(self) -> Archive:
        """Return another archive of the same home, for another thread."""
        return Archive(self.home, self.config, self._make_judge)

    @property
    def store(self) -> Store:
        """Database. Raises `StoreMissing` if nothing was archived."""
        return self.search.store

    @cached_property
    def search(self) -> ArchiveSearch:
        """Search over conversations. Raises `StoreMissing` if nothing was archived."""
        from ..search.archive_search import ArchiveSearch

        return ArchiveSearch(self.home, self.config.model)

    @cached_property
    def memories(self) -> MemoryCore:
        """Memories. The first use creates the home if it is missing."""
        from .memory import MemoryCore

        return MemoryCore.open(self.home, self.config.model, self._make_judge)

    @cached_property
    def review(self) -> MemoryReview:
        """Review of proposed memories, which keeps the proposals that it found."""
        from .memory_review import MemoryReview

        return MemoryReview(self.memories)

    @cached_property
    def documents(self) -> DocumentLibrary:
        """Indexed documents. The first use creates the home if it is missing."""
        from ..archiver.documents.document_folders import usual_roots
        from ..search.document_library import DocumentLibrary

        return DocumentLibrary.open(self.home, usual_roots(self.config.document_roots), self.config.model)

    @cached_property
    def deletions(self) -> Deleter:
        """Deletions with their previews. Raises `StoreMissing` if nothing was archived."""
        from .deletion.deleter import Deleter

        return Deleter(self.home, self.config.model, self.config.exclude)

    @cached_property
    def traces(self) -> CodeTraces:
        """Lines of code that agents wrote. Raises `StoreMissing` if nothing was archived."""
        from .traces.attribution import CodeTraces

        return CodeTraces.open(self.home)

    def pipeline(self) -> Pipeline:
        """Return a new ingest pipeline, which the caller closes."""
        from .pipeline import Pipeline

        return Pipeline(self.home, self.config.model, self.config.exclude)

    def close(self) -> None:
        """Close the components that are open."""
        opened = vars(self)
        opened.pop("review", None)
        for name in ("search", "memories", "documents", "deletions", "traces"):
            component: Closing | None = opened.pop(name, None)
            if component is not None:
                component.close()
