"""Formats: how each agent writes down what was said."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from ...core.conversation import Note, Session, Skipped, Turn
from ...core.report import Unsearched
from ..parse.lines import Line, Record

if TYPE_CHECKING:
    from .container import Conversation
    from .registry import CONTAINERS, FORMATS, by_agent, recognise

__all__ = ["CONTAINERS", "FORMATS", "Container", "Event", "Format", "Reader", "by_agent", "recognise"]

Event: TypeAlias = Turn | Note | Skipped


class Reader(Protocol):
    """Reads one transcript, from its start or from the start of one of its exchanges."""

    def read(self, lines: Iterable[Line]) -> Iterator[Event]:
        """The events of each line before the next line is taken: at least one turn or note, or exactly one `Skipped`.

        A line whose meaning depends on later ones is held back; its event comes before the turn that opens the next
        exchange, or after the last line.
        """
        ...


class Format(Protocol):
    """One agent's way of keeping its history."""

    @property
    def agent(self) -> str:
        """The agent's name, as in `claude-code`."""
        ...

    def roots(self) -> list[Path]:
        """The folders of this machine in which the agent keeps transcripts; only existing ones."""
        ...

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """Every transcript in a folder, sorted; what cannot be read is passed over with a warning in the log."""
        ...

    def keeps(self, path: Path, root: Path) -> bool:
        """Whether a file below a folder may be a transcript, by its name and by the folders in between."""
        ...

    def names(self, name: str) -> bool:
        """Whether a file's name is one that the agent gives to its transcripts."""
        ...

    def archive_name(self, path: Path, root: Path) -> str:
        """A transcript's relative path in the archive, with forward slashes; never leads out of it."""
        ...

    def claims(self, records: Sequence[Record]) -> bool:
        """Whether a file that begins with these records is in this format."""
        ...

    def identify(self, path: Path, head: bytes) -> Session:
        """Which session a file is, from its name and its first lines."""
        ...

    def reader(self, session: Session, *, shorten: bool = True) -> Reader:
        """A reader for one file of that session; `shorten` clips long inputs and results."""
        ...


@runtime_checkable
class Container(Format, Protocol):
    """A format that keeps conversations in containers: files that hold many, or one in many pieces."""

    def containers(self) -> Iterator[Path]:
        """Every container of this user; only existing ones."""
        ...

    def holds(self, path: Path) -> bool:
        """Whether a file is a container of this format. Raises `OSError`."""
        ...

    def state(self, path: Path) -> int:
        """What is another whenever the container is, at the price of a few `stat`. Raises `OSError`."""
        ...

    def conversations(self, path: Path) -> "Iterator[Conversation]":
        """The conversations of a container, originals before their forks; raises `SourceUnreadable`."""
        ...


def __getattr__(name: str) -> object:
    """The registry, loaded when somebody asks for it: reading one file takes one format."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import registry

    return getattr(registry, name)
