"""Protocols of a transcript format and of a container that holds several sessions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from ...core.conversation import Milliseconds, Note, Session, Skipped, Turn
from ...core.report import Unsearched
from ..files.lines import Line, Record

Event: TypeAlias = Turn | Note | Skipped


class ContainedSession(Struct, frozen=True):
    """One conversation of a container.

    `path` is where it stands: below the container's path, or below the name of the service that an export is from, so
    that a later export goes on where an earlier one ended. `archived` is its name below the agent's folder. `mark` is
    another one whenever the conversation is; `at` is its last change, 0 where that is not known. `rows` reads it as
    lines, line ends included, and raises `SourceUnreadable`.
    """

    path: Path
    archived: str
    mark: int
    at: Milliseconds
    rows: Callable[[], Iterable[bytes]]


class TranscriptReader(Protocol):
    """Reads one transcript, from its start or from the start of one of its exchanges."""

    def read(self, lines: Iterable[Line]) -> Iterator[Event]:
        """The events of each line before the next line is taken: at least one turn or note, or exactly one `Skipped`.

        A line whose meaning depends on later ones is held back; its event comes before the turn that opens the next
        exchange, or after the last line.
        """
        ...


class TranscriptFormat(Protocol):
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

    def reader(self, session: Session, *, shorten: bool = True) -> TranscriptReader:
        """A reader for one file of that session; `shorten` clips long inputs and results."""
        ...


@runtime_checkable
class ContainerFormat(TranscriptFormat, Protocol):
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

    def conversations(self, path: Path) -> Iterator[ContainedSession]:
        """The conversations of a container, originals before their forks; raises `SourceUnreadable`."""
        ...
