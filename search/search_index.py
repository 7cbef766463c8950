"""Protocol of the search index: find, details and read."""

from collections.abc import Sequence
from typing import Protocol

from ..core.query import Query
from ..core.results import Detail, Results, TranscriptExcerpt


class SearchIndex(Protocol):
    """Three layers of detail over one archive. Invalid arguments raise `InvalidInput` with a hint."""

    def find(self, query: Query, /, *, snippets: bool = True) -> Results:
        """Layer 1: return a page of hits for a query, best first.

        Args:
            query: The query.
            snippets: True to show the matching text in hits; False to show the beginning of their text.
        """
        ...

    def details(self, ids: Sequence[str], /) -> tuple[Detail, ...]:
        """Layer 2: return the full content of these items in the given order.

        Raises:
            TooManyIds: The list is empty or longer than `IDS_MAX`.
            UnknownIds: An ID does not exist.
        """
        ...

    def read(self, path: str, start_line: int = 1, end_line: int | None = None, /) -> TranscriptExcerpt:
        """Layer 3: return the conversation on the given lines. Line numbers are 1-based and inclusive.

        Raises:
            PathOutsideArchive, InvalidLineRange: The path or the lines do not exist.
        """
        ...
