"""Archive whose searches, details and excerpts are counted, in the tokens that the tools would print."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.cited_answer import AnswerReceipt
from ...core.tokens import count

if TYPE_CHECKING:
    from ...core.query import Query
    from ...core.results import Detail, Results, TranscriptExcerpt
    from ...search.archive_search import ArchiveSearch
    from ...templates.render import Renderer


class MeteredArchive:
    """Three layers of an archive that count their own costs. `archive` itself is not counted."""

    def __init__(self, archive: "ArchiveSearch", renderer: "Renderer") -> None:
        self.archive, self._renderer = archive, renderer
        self._tokens = self._searches = self._details = self._reads = 0

    def find(self, query: "Query") -> "Results":
        """Search, and count the page of hits."""
        results = self.archive.find(query, snippets=False)
        self._searches += 1
        self._tokens += count(self._renderer.search(results))
        return results

    def details(self, ids: Sequence[str]) -> tuple["Detail", ...]:
        """Return details, and count them."""
        details = self.archive.details(ids)
        self._details += len(details)
        self._tokens += count(self._renderer.observations(details))
        return details

    def read(self, path: str, start_line: int, end_line: int) -> "TranscriptExcerpt":
        """Read an excerpt of a transcript, and count it."""
        excerpt = self.archive.read(path, start_line, end_line)
        self._reads += 1
        self._tokens += count(self._renderer.read(excerpt))
        return excerpt

    def receipt(self, paths: Sequence[str] = ()) -> AnswerReceipt:
        """Return the costs so far, and the tokens of the conversations with these paths."""
        return AnswerReceipt(
            read_tokens=self._tokens,
            transcript_tokens=sum(map(self.archive.conversation_tokens, paths)),
            searches=self._searches,
            details=self._details,
            reads=self._reads,
        )
