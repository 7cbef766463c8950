"""Protocol of the search index: find, find_output, details and read."""

from collections.abc import Sequence
from typing import Protocol

from ..core.query import Filters, Query
from ..core.results import Detail, OutputMatches, Results, TranscriptExcerpt


class SearchIndex(Protocol):
    """Search in one archive at three levels of detail: hits, items, and lines of transcripts.

    Invalid arguments raise `InvalidInput` with a hint.
    """

    def find(self, query: Query, /, *, snippets: bool = True) -> Results:
        """Return a page of hits for a query, best first.

        Args:
            query: The query.
            snippets: True to show the matching text in hits, False to show the beginning of their text.
        """
        ...

    def find_output(
        self, text: str, filters: Filters, /, *, limit: int = 10, context: int = 2, seconds: float = 2.0
    ) -> OutputMatches:
        """Return the outputs of tool calls that contain a text literally.

        Args:
            text: Text to find. Case is ignored, and any white space matches any other white space.
            filters: Filters for the exchanges with the tool calls.
            limit: Maximum number of outputs, 1 to `LIMIT_MAX`.
            context: Number of lines to return before and after the match, 0 to `CONTEXT_MAX`.
            seconds: Time limit.

        Raises:
            InvalidInput: The text has no letter or digit or contains a secret, or the filters include roles.
        """
        ...

    def details(self, ids: Sequence[str], /) -> tuple[Detail, ...]:
        """Return the full content of these items in the given order.

        Raises:
            TooManyIds: The list is empty or longer than `IDS_MAX`.
            UnknownIds: An ID does not exist.
        """
        ...

    def read(self, path: str, start_line: int = 1, end_line: int | None = None, /) -> TranscriptExcerpt:
        """Return the conversation on the given lines. Line numbers are 1-based and inclusive.

        Raises:
            PathOutsideArchive, InvalidLineRange: The path or the lines do not exist.
        """
        ...
