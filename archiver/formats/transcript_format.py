"""Protocols for the transcript formats of agents.

Some agents store sessions in containers: databases or exports with several sessions, or sessions in several files.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

from ...core.conversation import Milliseconds, Note, Session, Skipped, Turn
from ...core.report import Unsearched
from ..files.lines import Line, Record

Event: TypeAlias = Turn | Note | Skipped

EXTRACTED: Final = "extracted"
"""Name of the folder of sessions that were extracted from a transcript. The agents use no folder with this name."""


class FormatReader(Protocol):
    """Reader of one transcript, from the start of the file or from the start of an exchange."""

    def read(self, lines: Iterable[Line]) -> Iterator[Event]:
        """Yield the events of each line before reading the next line.

        Each line yields turns and notes, or exactly one `Skipped`. Only a note about a sub-agent may accompany a
        `Skipped`. If the meaning of a line depends on later lines, a
        reader can delay its events. It then yields the events before the turn that opens the next exchange, or after
        the last line of the transcript.
        """
        ...


class TranscriptFormat(Protocol):
    """Transcripts of one agent: their locations, detection and readers."""

    @property
    def agent(self) -> str:
        """The agent's name, such as `claude-code`."""
        ...

    def roots(self) -> list[Path]:
        """Return the existing folders in which the agent stores this user's transcripts."""
        ...

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """Yield every transcript below a folder, sorted, and add the paths that are not searched to `skipped`.

        Unreadable folders are logged as a warning.
        """
        ...

    def may_be_transcript(self, path: Path, root: Path) -> bool:
        """Return whether a file below a folder can be a transcript, according to its name and path."""
        ...

    def matches_name(self, name: str) -> bool:
        """Return whether a file name follows a pattern that only this agent uses for transcripts."""
        ...

    def archive_name(self, path: Path, root: Path) -> str:
        """Return a transcript's relative path in the archive, with forward slashes.

        The path never points outside the archive.
        """
        ...

    def recognises(self, records: Sequence[Record]) -> bool:
        """Return whether a file that begins with these records is in this format."""
        ...

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session of a file, determined from its path and its first lines."""
        ...

    def reader(self, session: Session, *, shorten: bool = True) -> FormatReader:
        """Return a reader for one file of a session. With `shorten`, the reader clips long tool inputs and results."""
        ...


class ContainedSession(Struct, frozen=True):
    """One session of a container."""

    path: Path
    """Path that identifies the session. No file with this path exists.

    For an export, the path begins with the host name of the service, so that a later export updates the session. For
    any other container, the path begins with the path of the container.
    """
    archive_name: str
    """Path of the session's raw copy, relative to the agent's folder in the archive."""
    fingerprint: int
    """Fingerprint that changes whenever the session changes."""
    changed_at: Milliseconds
    """Time of the last change in milliseconds since 1970, or 0 if unknown."""
    lines: Callable[[], Iterable[bytes]]
    """Function that returns the session as JSON lines. Each line has a line end. Raises `SourceUnreadable`."""


@runtime_checkable
class ContainerFormat(TranscriptFormat, Protocol):
    """Format whose sessions are in databases or exports, or are split into several files."""

    def containers(self) -> Iterator[Path]:
        """Yield every existing container of this user."""
        ...

    def is_container(self, path: Path) -> bool:
        """Return whether a file is a container. Raises `OSError`."""
        ...

    def container_state(self, path: Path) -> int:
        """Return a fingerprint that changes whenever the container changes. Raises `OSError`.

        The fingerprint is computed from a few `stat` calls, without reading the container.
        """
        ...

    def sessions(self, path: Path) -> Iterator[ContainedSession]:
        """Yield the sessions of a container, each original before its forks. Raises `SourceUnreadable`."""
        ...


@runtime_checkable
class ExtractingFormat(TranscriptFormat, Protocol):
    """Format whose transcripts can contain the messages of other sessions, such as those of sub-agents.

    The lines with these messages have the outcome `SkipReason.SUBAGENT` in the transcript. They are copied unchanged,
    so that a deletion of a line applies to both copies.
    """

    def extracted(
        self, path: Path, archived: str, state: int, opened: Callable[[], BinaryIO]
    ) -> Iterator[tuple[Session, ContainedSession]]:
        """Yield each session whose messages are in a transcript.

        Args:
            path: Path of the transcript. The paths of its sessions begin with this path and `EXTRACTED`.
            archived: Name of the transcript's raw copy, relative to the agent's folder in the archive.
            state: State of the raw copy, which becomes a part of the fingerprints.
            opened: Function that opens the content of the raw copy. Raises `OSError`.
        """
        ...

    def extracted_records(self, lines: Iterable[Line]) -> dict[str, int]:
        """Map the ID of each record that `extracted` finds in a transcript to its line."""
        ...


def is_extracted(path: Path) -> bool:
    """Return whether the session at this path was extracted from a transcript."""
    return path.parent.name == EXTRACTED
