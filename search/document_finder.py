"""Finding documents: the same engines, asked for chunks alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ..archiver.store import Store
from ..core.disclosure import Filters, Mode
from ..core.document import ChunkKind, DocumentFilter, HeldChunk
from .embedder import Embedder
from .generation import Generations

if TYPE_CHECKING:
    from .engine import Engine

_AT_A_TIME = 50
_LEAST_WORDS, _LEAST_MEANING = 0.05, 0.2
"""Below both a chunk has nothing to do with a query, as with memories."""


@dataclass(frozen=True, slots=True)
class FoundChunk:
    """A chunk that matches. `score` (0-1) is the engines' own; `similarity` a true cosine, None where none was
    compared.
    """

    held: HeldChunk
    score: float
    similarity: float | None


class DocumentFinder:
    """Finds chunks by words and meaning. Loads engines and model when they are first needed."""

    def __init__(self, store: Store, generations: Generations, embedder: Embedder) -> None:
        self._store, self._generations, self._embedder = store, generations, embedder

    @cached_property
    def _engine(self) -> "Engine":
        from .engine import Engine

        return Engine(self._store, self._generations, self._embedder)

    def find(self, query: str, wanted: DocumentFilter, mode: Mode = Mode.BOTH) -> Iterator[FoundChunk]:
        """Chunks that match and satisfy the filter, best first; what has nothing to do with the query is left out."""
        events = self._engine.search(query, mode, _filters(wanted))
        events = [event for event in events if event.words >= _LEAST_WORDS or event.meaning >= _LEAST_MEANING]
        for start in range(0, len(events), _AT_A_TIME):
            part = events[start : start + _AT_A_TIME]
            known = self._store.documents.load([event.key for event in part])
            for event in part:
                if event.key in known and wanted.admits(known[event.key]):
                    yield FoundChunk(known[event.key], event.score, event.similarity)


def _filters(wanted: DocumentFilter) -> Filters:
    """As much of the filter as the engines know; the rest is asked of what they find."""
    return Filters(
        projects=wanted.namespaces,
        files=tuple(map(str, wanted.source_files)),
        kinds=tuple(wanted.kinds or ChunkKind),
    )
