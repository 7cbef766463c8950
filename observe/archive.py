"""Entry point to one home: settings, database, search, memories, documents, deletions and code traces."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.config import Config
from ..core.conversation import Milliseconds, now
from ..core.home import Home
from ..core.runtime import Closing, Progress, silent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..archiver.ingest.parser_pool import ParserPool
    from ..archiver.store import Store
    from ..core.digest import Digest
    from ..core.query import Filters
    from ..search.archive_search import ArchiveSearch
    from ..search.document_library import DocumentLibrary
    from .deletion.deleter import Deleter
    from .list_search import ListSearch
    from .memory import MemoryCore
    from .memory.contradictions import JudgeFactory
    from .memory_review import MemoryReview
    from .pipeline import Pipeline
    from .session_share import SessionSharer
    from .sync.synchronizer import Synchronizer
    from .traces.attribution import CodeTraces
    from .usage import TokenUsage


class Archive(Closing):
    """Archive of one home, for one thread. Settings and components are imported and opened on first use.

    `close` closes the components. Later uses open them again.
    """

    def __init__(
        self,
        home: Home,
        config: Config | None = None,
        make_judge: JudgeFactory | None = None,
        clock: Callable[[], Milliseconds] = now,
    ) -> None:
        """Prepare an archive without access to the disk.

        Args:
            home: Folder with the data.
            config: Settings. By default, they are read from the home.
            make_judge: Factory of the model that judges contradictions of memories. By default, rules judge.
            clock: Time for memories.
        """
        self.home, self.make_judge, self._clock = home, make_judge, clock
        if config is not None:
            self.config = config

    @classmethod
    def find(cls) -> Archive:
        """Return the archive of `Home.find()`."""
        return cls(Home.find())

    def another(self, clock: Callable[[], Milliseconds] = now) -> Archive:
        """Return another archive of the same home and settings, for another thread or owner."""
        return Archive(self.home, self.config, self.make_judge, clock)

    @cached_property
    def config(self) -> Config:
        """Settings of the home. Raises `ConfigInvalid`."""
        return Config.read(self.home.config)

    @cached_property
    def store(self) -> Store:
        """Database. Raises `StoreMissing` if nothing was archived."""
        return self._open_store()

    @cached_property
    def search(self) -> ArchiveSearch:
        """Search over conversations. Raises `StoreMissing` if nothing was archived."""
        from ..search.archive_search import ArchiveSearch

        return ArchiveSearch(self.home, self.config.model)

    @cached_property
    def lists(self) -> ListSearch:
        """Commands, fixes of errors, and open items. Raises `StoreMissing` if nothing was archived."""
        from .list_search import ListSearch

        return ListSearch(self.search)

    @cached_property
    def memories(self) -> MemoryCore:
        """Memories. The first use creates the home if it is missing."""
        from .memory import MemoryCore

        return MemoryCore.open(self._new_store(), self.config.model, self.make_judge, self._clock)

    @cached_property
    def review(self) -> MemoryReview:
        """Review of proposed memories, which keeps the proposals that it found."""
        from .memory_review import MemoryReview

        return MemoryReview(self.memories)

    @cached_property
    def usage(self) -> TokenUsage:
        """Tokens and list prices of the archived conversations. Raises `StoreMissing` if nothing was archived."""
        from .usage import TokenUsage

        return TokenUsage(self.home, self.store, self.config)

    @cached_property
    def deletions(self) -> Deleter:
        """Deletions with their previews. Raises `StoreMissing` if nothing was archived."""
        from .deletion.deleter import Deleter

        return Deleter(self.home, self.config.model, self.config.exclude)

    @cached_property
    def sharing(self) -> SessionSharer:
        """Sessions without secrets and home folders, to share. Raises `StoreMissing` if nothing was archived."""
        from .session_share import SessionSharer

        return SessionSharer(self.home, self.store, self.config.private_projects, Path.home())

    @cached_property
    def traces(self) -> CodeTraces:
        """Lines of code that agents wrote. The first use creates the home if it is missing."""
        from .traces.attribution import CodeTraces

        return CodeTraces(self._new_store())

    def digest(self, filters: Filters, progress: Progress = silent) -> Digest:
        """Return what was done, decided, learned and left open, and its cost. Filters of time and project apply.

        Raises:
            UnknownProject: A project is unknown.
        """
        from .digest import digest_of

        return digest_of(self.search, self.usage, filters, progress)

    def documents(self, roots: Sequence[Path]) -> DocumentLibrary:
        """Open the indexed documents, and create the home if it is missing. The caller closes them.

        Only files below `roots` (`usual_roots` for agents) can be indexed. Files in the home cannot be indexed.
        """
        from ..search.document_library import DocumentLibrary

        return DocumentLibrary.open(self._new_store(), roots, self.config.model)

    def pipeline(self, pool: ParserPool | None = None) -> Pipeline:
        """Open the ingest pipeline, and create the home if it is missing. The caller closes it.

        `pool` parses files and may already be running.
        """
        from .pipeline import Pipeline

        return Pipeline(self.home, self.config.model, self.config.exclude, pool=pool)

    def synchronizer(self, passphrase: str = "") -> Synchronizer:
        """Return the synchronisation with other devices. A run creates the home if it is missing."""
        from .sync.synchronizer import Synchronizer

        return Synchronizer(self.home, self.config, self._new_store, passphrase)

    def close(self) -> None:
        """Close the components that are open."""
        opened = vars(self)
        opened.pop("review", None)
        opened.pop("sharing", None)
        opened.pop("usage", None)
        for name in ("store", "search", "memories", "deletions", "traces"):
            component: Closing | None = opened.pop(name, None)
            if component is not None:
                component.close()

    def _new_store(self) -> Store:
        """Open the database for a component that closes it, and create the home if it is missing."""
        self.home.prepare()
        return self._open_store(create=True)

    def _open_store(self, *, create: bool = False) -> Store:
        from ..archiver.store import Store

        return Store.create(self.home.database, read_only=self.home.read_only) if create else Store.of(self.home)
