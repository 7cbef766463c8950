"""Stub of the search layers. If it is run as a module, it serves them as an MCP server."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from msgspec.structs import replace

from palaver.agents.conversation_tools import CONVERSATION, ConversationContext
from palaver.agents.toolset import ServedTools, ServerConfig
from palaver.core.errors import InvalidLineRange, PathOutsideArchive, TooManyIds, UnknownIds
from palaver.core.home import Home
from palaver.core.query import IDS_MAX, Filters, Query
from palaver.core.results import Detail, OutputMatches, Results, TranscriptExcerpt
from palaver.observe.archive import Archive
from palaver.templates.render import Renderer

from ..templates.samples import detail, hit, results, transcript

DATES = (
    "Invalid date format. Use YYYY-MM-DD format, or words: yesterday, last tuesday, 3 weeks ago, 7d, last month, "
    "march 2026, last july, q3 2026."
)
"""Error for an invalid date."""


@dataclass
class FakeLayers:
    """Search layers that return sample values and raise the errors of the real layers. `asked` has the queries, and
    `read_lines` the requested paths and lines.
    """

    asked: list[Query] = field(default_factory=list[Query])
    read_lines: list[tuple[str, int, int | None]] = field(default_factory=list[tuple[str, int, int | None]])
    outputs: list[tuple[str, Filters, int, int]] = field(default_factory=list[tuple[str, Filters, int, int]])

    def find(self, query: Query, /, *, snippets: bool = True) -> Results:  # noqa: ARG002 - as in `SearchIndex`
        """Return two hits. Return no hits for the word `nothing` and a bug for the word `crash`."""
        self.asked.append(query)
        if query.concepts == ("crash",):
            raise ZeroDivisionError
        print("a stray line that must not reach the protocol")
        return results(*(() if query.concepts == ("nothing",) else (hit(1), hit(2))), query=query)

    def details(self, ids: Sequence[str]) -> tuple[Detail, ...]:
        """Return the same observation for every ID. Raise an error for `obs-9`, `9` and the deleted `obs-8`."""
        if not 1 <= len(ids) <= IDS_MAX:
            raise TooManyIds(len(ids), IDS_MAX)
        if unknown := [public for public in ids if public.lower() in {"obs-9", "9"}]:
            raise UnknownIds(unknown)
        if gone := [public for public in ids if public == "obs-8"]:
            raise UnknownIds(gone, gone)
        return tuple(detail() for _ in ids)

    def read(self, path: str, start_line: int = 1, end_line: int | None = None) -> TranscriptExcerpt:
        """Return the transcript at the only valid path."""
        self.read_lines.append((path, start_line, end_line))
        if path != transcript().path:
            raise PathOutsideArchive(path)
        if start_line < 1:
            raise InvalidLineRange("startLine must be ≥1")
        if end_line is not None and end_line < start_line:
            raise InvalidLineRange("endLine must be ≥startLine")
        return transcript()

    def find_output(
        self,
        text: str,
        filters: Filters,
        /,
        *,
        limit: int = 10,
        context: int = 2,
        seconds: float = 2.0,  # noqa: ARG002
    ) -> OutputMatches:
        self.outputs.append((text, filters, limit, context))
        return OutputMatches(text)


def over(open_layers: Callable[[], FakeLayers]) -> tuple[ServedTools, ServerConfig]:
    """Return the conversation toolset over these layers, with the configuration of a home that is never opened."""

    def opened(place: ServerConfig) -> ConversationContext:
        return ConversationContext(open_layers(), place.renderer)

    return ServedTools.of([replace(CONVERSATION, open=opened)]), ServerConfig(
        Archive(Home(Path("/nowhere"))), Renderer()
    )


if __name__ == "__main__":
    from palaver.agents.server import serve

    serve(*over(FakeLayers), version="1.2.3")
