"""Protocol of an index below the engine: candidates for a query, and the statistics that rank them."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from ...core.query import Filters
from ...core.results import Correction
from ..index.indexed_texts import TextWindow
from ..index.matches import Flags, Floats, Integers, TextMatches, VectorMatches
from ..index.text_index import Pairs
from ..index.vector_index import Array
from ..model.embedding import TokenVectors
from ..query.query_analysis import AnalyzedQuery


class Candidates(Protocol):
    """View of an index at the time of the last `refresh`. `Snapshot` is the view of the archive on this machine.

    Keys of items, events and sessions are numbers of the index.
    """

    @property
    def lag(self) -> int:
        """Number of changes that searches see but that the published index does not contain yet."""
        ...

    @property
    def seq(self) -> int:
        """Number of the last visible change. Caches of results are valid for one number."""
        ...

    @property
    def model(self) -> str:
        """Name of the embedding model that computed the vectors."""
        ...

    def refresh(self) -> None:
        """Make new changes visible."""
        ...

    def resolve(self, query: AnalyzedQuery, size: int | None = None) -> AnalyzedQuery:
        """Return the query with the attributes that depend on the index, such as spelling corrections.

        `size` is the number of entries that can match, by default of the whole index.
        """
        ...

    def newest(self, filters: Filters, limit: int) -> tuple[list[tuple[int, int]], bool]:
        """Return (instant, event key) pairs of about `limit` entries, newest first, and True if the list is complete.

        Undated events come last.
        """
        ...

    def names(self, field: str) -> set[str]:
        """Return all values of a filter field. Some values may have no entry left, so check them with `has`."""
        ...

    def has(self, filters: Filters) -> bool:
        """Return whether any entry satisfies the filters."""
        ...

    def correction(self, word: str) -> Correction | None:
        """Return a similar known word for an unknown word, or None if no known word is similar."""
        ...

    def entries_with(self, term: str) -> int:
        """Return the number of entries with a term."""
        ...

    def idf(self, word: str) -> float:
        """Return the mean inverse document frequency of a word's terms, as in BM25."""
        ...

    def idf_of_term(self, term: str) -> float:
        """Return the inverse document frequency of a term, as in BM25."""
        ...

    def adjacent_terms(self, pairs: Pairs, items: Integers) -> Floats:
        """Return, for each item, the summed weight of the term pairs that are adjacent in its best entry, 0 to 1."""
        ...

    def text(
        self, query: AnalyzedQuery, filters: Filters, limit: int, among: Sequence[int] | None = None
    ) -> TextMatches:
        """Return the entries that match words of the query, best first. `among` restricts the search to these items."""
        ...

    def nearest(self, vector: Array, filters: Filters, limit: int) -> VectorMatches:
        """Return the vectors that satisfy the filters and are nearest to `vector`, best first."""
        ...

    def near(self, vector: Array, filters: Filters, limit: int) -> VectorMatches:
        """Return the nearest vectors, best first. The caller must filter items of unpublished changes."""
        ...

    def of_events(self, vector: Array, events: Integers) -> VectorMatches:
        """Return two exact cosines per item of these events: that of its prompt, and the best of its other texts."""
        ...

    def waiting(self, matches: TextMatches, vectors: VectorMatches) -> Integers:
        """Return the keys of events that only text search finds because they are not embedded yet, ascending."""
        ...

    def late_interaction(self, query: TokenVectors, vector: Array, vectors: VectorMatches) -> Floats:
        """Return the late-interaction score for the item of each vector, or NaN if unknown.

        Args:
            query: Token embeddings of the query.
            vector: Vector of the query.
            vectors: Vectors of the items.
        """
        ...

    def windows(self, items: Sequence[int], *, with_context: bool) -> Iterator[tuple[int, TextWindow]]:
        """Yield (item key, window) for the text of each entry of these items.

        `with_context` includes the additional windows of short exchanges, which contain preceding text.
        """
        ...

    def sessions_of(self, items: Sequence[int]) -> dict[int, int]:
        """Map the key of each of these items that exists to its session, or to 0 without a session."""
        ...

    def items_of(self, sessions: Sequence[int]) -> list[int]:
        """Return the keys of all items of these sessions."""
        ...

    def allowed(self, filters: Filters, among: Sequence[int]) -> AbstractSet[int]:
        """Return the items in `among` that satisfy the filters."""
        ...

    def passing(self, filters: Filters, items: Integers) -> Flags:
        """Return a flag per item: True if the item satisfies the filters."""
        ...

    def is_narrow(self, filters: Filters) -> bool:
        """Return whether the number of entries that satisfy the filters is small enough to rank all of them."""
        ...
