"""Context of the rag tools: memories and documents, with namespaces for scopes and project names."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ...core.errors import InvalidInput
from ...core.memory import PROJECT, project_namespace
from ...core.project import root_of
from ...observe.memory import GLOBAL_NAMESPACES
from ...search.rank.item_finder import CacheStats
from ..json_reply import BUDGET, json_reply, truncated
from ..memory_context import MemoryContext
from ..toolset import ServerConfig, ToolReply
from .injection_patterns import refuse_injection

_NAME: Final = "Give a name with letters or digits, such as my-app."


class RagContext(MemoryContext):
    """Memories and documents of one Palaver home. Replies are truncated to `budget` tokens, unless it is None."""

    def __init__(self, config: ServerConfig, budget: int | None = BUDGET) -> None:
        super().__init__(config)
        self._budget = budget
        self.lookups = CacheStats()
        """Number of searches whose query was embedded before, and of searches whose query had to be embedded."""

    @contextmanager
    def lookup(self) -> Generator[None]:
        """Count the searches in the block as one, because a tool may search for its query several times."""
        before = self._embedded()
        yield
        after = self._embedded()
        missed = after.misses > before.misses
        hits = self.lookups.hits + (after.hits > before.hits and not missed)
        self.lookups = CacheStats(hits, self.lookups.misses + missed)

    def _embedded(self) -> CacheStats:
        """Return the numbers of query texts that were cached and embedded."""
        documents = self.documents.cache_stats if "documents" in self.__dict__ else CacheStats()
        memories = self.core.cache_stats
        return CacheStats(memories.hits + documents.hits, memories.misses + documents.misses)

    def reply(self, fields: Mapping[str, object]) -> ToolReply:
        """Return a JSON reply within the budget."""
        return json_reply(fields if self._budget is None else truncated(fields, self._budget))

    def namespace_of(self, project_name: str, *, claim: bool = False) -> str:
        """Return the namespace of a project. Raises `InvalidInput` for a name without letters and digits."""
        namespace = project_namespace(project_name)
        if not namespace.startswith(PROJECT):
            raise InvalidInput(f"Invalid project_name: {project_name!r}", hint=_NAME)
        return self.namespace(namespace, claim=claim)

    def namespaces(self, scope: str | None, project_name: str | None) -> tuple[str, ...]:
        """Return the namespaces to search. An empty result means all namespaces.

        Without a scope, the result for a project also contains the global namespaces, because global memories can name
        the project.
        """
        if scope == "global":
            return GLOBAL_NAMESPACES
        if project_name is not None:
            return (self.namespace_of(project_name), *(() if scope else GLOBAL_NAMESPACES))
        if scope == "project":
            known = self.core.count_by("namespace")
            return tuple(name for name in known if name.startswith(PROJECT)) or (PROJECT,)
        return ()

    @property
    def project_root(self) -> Path:
        """Root folder of the agent's project."""
        return root_of(self.config.project)

    def shown_path(self, file: Path) -> str:
        """Return a path relative to the agent's project, or the whole path of a file outside of it."""
        root = self.project_root
        return str(file.relative_to(root) if file.is_relative_to(root) else file)

    def refuse_injection(self, *texts: str) -> None:
        """In strict mode, raise `SuspectedInjection` if one of the texts looks like an injection."""
        if self.config.strict:
            for text in texts:
                refuse_injection(text)
