"""Finding documents: the same engines, asked for chunks alone."""

from collections.abc import Iterator

from msgspec import Struct

from ...core.document import ChunkKind, DocumentFilter, HeldChunk
from ...core.query import Filters, Mode
from .finder import Finder


class FoundChunk(Struct, frozen=True):
    """A chunk that matches. `score` (0-1) is the engines' own; `similarity` a true cosine, None where none was
    compared.
    """

    held: HeldChunk
    score: float
    similarity: float | None


class DocumentFinder(Finder):
    """Finds chunks by words and meaning."""

    def find(self, query: str, wanted: DocumentFilter, mode: Mode = Mode.BOTH) -> Iterator[FoundChunk]:
        """Chunks that match and satisfy the filter, best first; what has nothing to do with the query is left out."""
        found = self._found(query, mode, _filters(wanted), self._store.documents.load, wanted.admits, weak=True)
        return (FoundChunk(held, event.score, event.similarity) for held, event in found)


def _filters(wanted: DocumentFilter) -> Filters:
    """As much of the filter as the engines know; the rest is asked of what they find."""
    return Filters(
        projects=wanted.namespaces,
        files=tuple(map(str, wanted.source_files)),
        kinds=tuple(wanted.kinds or ChunkKind),
    )
