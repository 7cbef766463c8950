"""Protocols of transcript formats: one per agent, some with containers that hold several sessions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from ...core.conversation import Milliseconds, Note, Session, Skipped, Turn
from ...core.report import Unsearched
from ..files.lines import Line, Record

Event: TypeAlias = Turn | Note | Skipped


class FormatReader(Protocol):
    """Reads one transcript, from its start or from the start of one of its exchanges."""

    def read(self, lines: Iterable[Line]) -> Iterator[Event]:
        """Yield the events of each line before taking the next: turns and notes, or exactly one `Skipped`.

        A reader may hold a line back if its meaning depends on later lines. Its events then come before the turn that
        opens the next exchange, or after the last line.
        """
        ...


class TranscriptFormat(Protocol):
    """Transcripts of one agent: where they are stored, how to recognise them and how to read them."""

    @property
    def agent(self) -> str:
        """The agent's name, such as `claude-code`."""
        ...

    def roots(self) -> list[Path]:
        """Return the existing folders in which the agent stores this user's transcripts."""
        ...

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """Yield every transcript below a folder, sorted; `skipped` collects what is left out.

        Folders that cannot be read are logged as a warning.
        """
        ...

    def may_be_transcript(self, path: Path, root: Path) -> bool:
        """Return whether a file below a folder may be a transcript, judged by its name and the folders in between."""
        ...

    def matches_name(self, name: str) -> bool:
        """Return whether only this agent names its transcripts like this."""
        ...

    def archive_name(self, path: Path, root: Path) -> str:
        """Return a transcript's relative path in the archive, with forward slashes; it never leads out of it."""
        ...

    def recognises(self, records: Sequence[Record]) -> bool:
        """Return whether a file that begins with these records is in this format."""
        ...

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session of a file, from its path and its first lines."""
        ...

    def reader(self, session: Session, *, shorten: bool = True) -> FormatReader:
        """Return a reader for one file of a session; `shorten` clips long tool inputs and results."""
        ...


class ContainedSession(Struct, frozen=True):
    """One session of a container."""

    path: Path
    """Identity across scans: a path below the container, or below the service name so that later exports match."""
    archive_name: str
    """Path in the archive, below the agent's folder."""
    fingerprint: int
    """Changes whenever the session changes."""
    changed_at: Milliseconds
    """Time of the last change; 0 if unknown."""
    lines: Callable[[], Iterable[bytes]]
    """Return the session as JSON lines with line ends. Raises `SourceUnreadable`."""


@runtime_checkable
class ContainerFormat(TranscriptFormat, Protocol):
    """A format whose sessions are stored in databases or exports, or spread over several files."""

    def containers(self) -> Iterator[Path]:
        """Yield every existing container of this user."""
        ...

    def is_container(self, path: Path) -> bool:
        """Return whether a file is a container. Raises `OSError`."""
        ...

    def container_state(self, path: Path) -> int:
        """Return a number that changes whenever the container does; costs a few `stat` calls. Raises `OSError`."""
        ...

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield the sessions of a container, originals before their forks. Raises `SourceUnreadable`."""
        ...
