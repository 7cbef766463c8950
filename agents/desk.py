"""Desks: what a surface's tools work with, and what it takes to open one."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct

from ..core.errors import InvalidInput, PalaverError, ServerNotReady
from ..core.home import Home
from ..core.query import Query
from ..core.results import Detail, Results, TranscriptExcerpt
from ..templates.render import Renderer

if TYPE_CHECKING:
    from ..observe.memory import JudgeFactory

Part = TypeVar("Part")


class Layers(Protocol):
    """The three layers a tool can ask; each raises the `InvalidInput` that says how to correct the call."""

    def search(self, query: Query, /, *, snippets: bool = True) -> Results: ...

    def get_observations(self, ids: Sequence[str], /) -> tuple[Detail, ...]: ...

    def read(self, path: str, start_line: int = 1, end_line: int | None = None, /) -> TranscriptExcerpt: ...


class Desk(Struct, frozen=True):
    """What the three layers' tools work with; other surfaces have desks of their own."""

    layers: Layers
    renderer: Renderer


class Place(Struct, frozen=True):
    """What a surface needs to open its desk: where everything lies, the model that embeds, and who renders.

    Documents are taken up from below `roots` alone. `project` is the folder in which the agent works. `judging` makes
    who says whether memories disagree; by rules where there is none. With `background` the server embeds what it
    indexed in a process of its own.
    """

    home: Home
    model: str | None
    renderer: Renderer
    roots: tuple[Path, ...] = ()
    project: Path = Path()
    judging: "JudgeFactory | None" = None
    background: bool = False


def opened(part: Callable[[], Part]) -> Part:
    """A part of a desk; raises `ServerNotReady` where it cannot be opened, and the next call tries again."""
    try:
        return part()
    except InvalidInput:
        raise
    except PalaverError as error:
        raise ServerNotReady(error) from error
