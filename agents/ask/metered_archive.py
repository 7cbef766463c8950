"""Archive that counts its searches, details and excerpts, and the tokens that they cost when printed."""

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
    """Search, details and excerpts of an archive, with their costs. Direct calls of `archive` are not counted."""

    def __init__(self, archive: "ArchiveSearch", renderer: "Renderer") -> None:
        self.archive, self.renderer = archive, renderer
        self._tokens = self._searches = self._details = self._reads = 0

    def find(self, query: "Query") -> "Results":
        """Search, and add the tokens of the printed hits to the costs."""
        results = self.archive.find(query, snippets=False)
        self._searches += 1
        self._tokens += count(self.renderer.search(results))
        return results

    def details(self, ids: Sequence[str]) -> tuple["Detail", ...]:
        """Return the details of these IDs, and add their tokens to the costs."""
        details = self.archive.details(ids)
        self._details += len(details)
        self._tokens += count(self.renderer.observations(details))
        return details

    def read(self, path: str, start_line: int, end_line: int) -> "TranscriptExcerpt":
        """Read an excerpt of a transcript, and add its tokens to the costs."""
        excerpt = self.archive.read(path, start_line, end_line)
        self._reads += 1
        self._tokens += count(self.renderer.read(excerpt))
        return excerpt

    def receipt(self, paths: Sequence[str] = ()) -> AnswerReceipt:
        """Return a receipt with the costs so far and the total tokens of the conversations at these paths."""
        return AnswerReceipt(
            read_tokens=self._tokens,
            transcript_tokens=sum(map(self.archive.conversation_tokens, paths)),
            searches=self._searches,
            details=self._details,
            reads=self._reads,
        )
