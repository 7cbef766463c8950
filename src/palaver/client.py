"""Python client: the tools of the toolset `rag` as async methods, without a server, and answers to questions.

`dispatch` is the Python equivalent of `palaver ask`: it answers a question from past conversations.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from .agents.rag import RAG, RagContext
from .agents.rag.rag_memory_tools import CategoryName, LanguageName, LevelName, ScopeName
from .agents.rag.rag_replies import (
    CodeReply,
    ContextReply,
    DeletedReply,
    IndexedReply,
    MemoriesReply,
    StatsReply,
    StoredReply,
)
from .agents.toolset import ServerConfig
from .archiver.documents.document_folders import usual_roots
from .core.conversation import use_time_zone
from .core.home import Home, is_read_only_mode
from .observe.archive import Archive
from .templates.render import Renderer

Result = TypeVar("Result")

_TOOLS: Final = {tool.name: tool for tool in RAG.tools}


class AsyncClient:
    """Client of one home, for one event loop.

    One thread of the client does the work, so calls do not block the event loop, and run one after another. A call
    opens the home if `initialize` was not called. Methods raise `PalaverError`: `InvalidInput` for invalid arguments,
    `ServerReadOnly` for writes in read-only mode.
    """

    def __init__(
        self, home: str | Path | None = None, *, project: str | Path | None = None, read_only: bool = False
    ) -> None:
        """Prepare a client. Only the settings are read from the disk.

        Args:
            home: Folder with the data. The default is `PALAVER_HOME`, or else the data folder of the platform.
            project: Folder of the current project. The default is the working folder. Code below it can be indexed,
                unless it is the root of a file system.
            read_only: True to change no byte of the home. PALAVER_READ_ONLY has the same effect.
        """
        root = Home.find().root if home is None else Path(home).expanduser().absolute()
        archive = Archive(Home(root, read_only=read_only or is_read_only_mode()))
        use_time_zone(archive.config.display_zone)
        folder = Path.cwd() if project is None else Path(project).expanduser().absolute()
        self._context = RagContext(
            ServerConfig(
                archive,
                Renderer(archive.home.templates),
                usual_roots((str(folder), *archive.config.document_roots)),
                folder,
                background=not archive.home.read_only,
            ),
            budget=None,
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="palaver-client")

    async def initialize(self) -> None:
        """Open the home, and create it if it is missing. Raises `ServerNotReady` if that fails."""
        await self._run(lambda: self._context.core)

    async def close(self) -> None:
        """Close the home. Call it once, after all other calls."""
        await self._run(self._context.close)
        self._thread.shutdown()

    async def __aenter__(self) -> Self:
        await self.initialize()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def store_memory(
        self,
        content: str,
        category: CategoryName,
        scope: ScopeName = "global",
        project_name: str | None = None,
        importance: float = 0.5,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        context_level: LevelName | None = None,
    ) -> StoredReply:
        """Store a memory: one preference, fact, event, workflow or piece of context.

        Args:
            content: The text, at most 50,000 characters. The same content is stored once.
            category: Kind of the memory.
            scope: `global` for all projects, or `project` for the named one.
            project_name: Project of the memory. A global memory stays global, and is only labelled with this name.
            importance: 0 to 1. Important memories rank higher.
            tags: At most 20 keywords.
            metadata: Values to store with the memory. Nested values become texts.
            context_level: Detected from the content if omitted. `SESSION_STATE` expires after 48 hours.
        """
        reply: StoredReply = await self._call(
            "store_memory",
            content=content,
            category=category,
            scope=scope,
            project_name=project_name,
            importance=importance,
            tags=tags,
            metadata=metadata,
            context_level=context_level,
        )
        return reply

    async def retrieve_memories(
        self,
        query: str,
        limit: int = 5,
        context_level: LevelName | None = None,
        scope: ScopeName | None = None,
        project_name: str | None = None,
        category: CategoryName | None = None,
        min_importance: float = 0.0,
        tags: list[str] | None = None,
    ) -> MemoriesReply:
        """Return at most `limit` memories that match a query and all filters, best first.

        `project_name` selects the memories of a project and, unless `scope` is `project`, global memories that name it.
        """
        reply: MemoriesReply = await self._call(
            "retrieve_memories",
            query=query,
            limit=limit,
            context_level=context_level,
            scope=scope,
            project_name=project_name,
            category=category,
            min_importance=min_importance,
            tags=tags,
        )
        return reply

    async def retrieve_preferences(self, query: str, limit: int = 5) -> MemoriesReply:
        """Return the matching memories of the level `USER_PREFERENCE`, best first."""
        reply: MemoriesReply = await self._call("retrieve_preferences", query=query, limit=limit)
        return reply

    async def retrieve_project_context(
        self, query: str, limit: int = 5, project_name: str | None = None
    ) -> MemoriesReply:
        """Return the matching memories of the level `PROJECT_CONTEXT`, best first.

        Without a project name, memories of the client's project and global memories are searched.
        """
        reply: MemoriesReply = await self._call(
            "retrieve_project_context", query=query, limit=limit, project_name=project_name
        )
        return reply

    async def retrieve_session_state(self, query: str, limit: int = 5) -> MemoriesReply:
        """Return the matching memories of the level `SESSION_STATE`, best first."""
        reply: MemoriesReply = await self._call("retrieve_session_state", query=query, limit=limit)
        return reply

    async def delete_memory(self, memory_id: str) -> DeletedReply:
        """Delete a memory. For an unknown ID, `deleted` is false."""
        reply: DeletedReply = await self._call("delete_memory", memory_id=memory_id)
        return reply

    async def get_memory_stats(self) -> StatsReply:
        """Return the number of memories by category and level, and the statistics of the query embedding cache."""
        reply: StatsReply = await self._call("get_memory_stats")
        return reply

    async def show_current_context(self, query: str | None = None) -> ContextReply:
        """Return the memories of each level that a query would retrieve in this project, or the latest ones."""
        reply: ContextReply = await self._call("show_current_context", query=query)
        return reply

    async def search_code(
        self,
        query: str,
        project_name: str | None = None,
        limit: int = 10,
        file_pattern: str | None = None,
        language: LanguageName | None = None,
    ) -> CodeReply:
        """Return at most `limit` units of indexed code that match a query, best first.

        Without a project name, the code of the client's project is searched.
        """
        reply: CodeReply = await self._call(
            "search_code",
            query=query,
            project_name=project_name,
            limit=limit,
            file_pattern=file_pattern,
            language=language,
        )
        return reply

    async def index_codebase(
        self, directory_path: str | Path, project_name: str | None = None, recursive: bool = True
    ) -> IndexedReply:
        """Index the code and documents of a folder. `project_name` is the folder's name by default.

        Unchanged files are skipped.
        """
        reply: IndexedReply = await self._call(
            "index_codebase",
            directory_path=_absolute(directory_path),
            project_name=project_name,
            recursive=recursive,
        )
        return reply

    async def _call(self, name: str, **arguments: Any) -> Any:
        """Run a tool and return its reply."""
        read_only = self._context.config.home.read_only
        reply = await self._run(lambda: _TOOLS[name].call(self._context, arguments, read_only=read_only))
        return reply.data

    async def _run(self, work: Callable[[], Result]) -> Result:
        """Run a function in the thread of the client."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _absolute(path: str | Path) -> str:
    return str(Path(path).expanduser().absolute())
