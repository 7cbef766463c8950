"""Memories for tests, with fake vectors and a settable clock."""

from dataclasses import dataclass, field
from pathlib import Path

from palaver.archiver.redaction import Redactor
from palaver.archiver.store import Store
from palaver.core.memory import Memory, StoredMemory
from palaver.observe.memory import MemoryCore, RememberResult
from palaver.search.index.generation import Generations
from palaver.search.model.embedding import Embedder

from ...search.fake_embedder import FakeEmbedder

DAY = 86_400_000
KEY = bytes(32)


@dataclass
class Harness:
    """Memories over an empty store."""

    folder: Path
    embedder: Embedder = field(default_factory=FakeEmbedder)
    at: int = 1_000 * DAY

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.store = Store.create(self.folder / "palaver.db")
        self.core = self.another(self.store)

    def another(self, store: Store | None = None) -> MemoryCore:
        """Return the memories as another process opens them."""
        opened = store or Store.open(self.folder / "palaver.db")
        generations, redactor = Generations(self.folder / "index"), Redactor(KEY)
        return MemoryCore(opened, generations, self.embedder, redactor, clock=lambda: self.at)

    def remember(self, content: str, kind: str = "preference", **values: object) -> RememberResult:
        """Store a memory and return the result."""
        return self.core.remember(Memory(content, kind, **values))  # type: ignore[arg-type]

    def add(self, content: str, kind: str = "preference", **values: object) -> StoredMemory:
        """Store a memory and return it."""
        return self.remember(content, kind, **values).stored

    def recall(self, query: str) -> list[str]:
        """Return the recalled contents."""
        return [found.stored.memory.content for found in self.core.recall(query, limit=50)]

    def golden(self, content: str, kind: str = "preference", **values: object) -> StoredMemory:
        """Store a memory, report six successes, and approve it as a golden rule."""
        stored = self.add(content, kind, **values)
        self.succeed(stored.id, 6)
        return self.core.feedback.approve(stored.id)

    def succeed(self, memory_id: str, times: int = 1) -> StoredMemory:
        """Report successes and return the memory after the last."""
        return [self.core.feedback.outcome(memory_id, success=True).after for _ in range(times)][-1]

    def fail(self, memory_id: str, times: int = 1) -> StoredMemory:
        """Report failures and return the memory after the last."""
        return [self.core.feedback.outcome(memory_id, success=False).after for _ in range(times)][-1]
