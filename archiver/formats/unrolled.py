"""Unrolled conversations: what the formats have in common that find theirs in containers."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ...core.conversation import Note, Session, Skipped, Turn
from ...core.report import Unsearched
from ..files.lines import Line, Record, records
from . import folders
from .calls import Calls
from .given import Given, of_records
from .marks import Facts

TITLE_RANK = 4


class InContainers:
    """A format without transcripts of its own: every conversation lies in a container."""

    def roots(self) -> list[Path]:
        """None."""
        return []

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:  # noqa: ARG002 - the signature is the protocol's
        """None."""
        return iter(())

    def keeps(self, path: Path, root: Path) -> bool:  # noqa: ARG002 - the signature is the protocol's
        """No file is a transcript as it is."""
        return False

    def names(self, name: str) -> bool:  # noqa: ARG002 - the signature is the protocol's
        """No name is a transcript's."""
        return False

    def archive_name(self, path: Path, root: Path) -> str:
        """As it lies below its root."""
        return folders.archive_name(path, root)

    def claims(self, records: Sequence[Record]) -> bool:  # noqa: ARG002 - the signature is the protocol's
        """No file is in this format as it is."""
        return False


class RowReader(ABC):
    """Reads one conversation line by line, each from a single record. What it remembers of earlier lines never reaches
    over the start of an exchange, except for facts of the whole session.
    """

    def __init__(self, session: Session, *, shorten: bool) -> None:
        self._session, self._shorten = session, shorten
        self._facts = Facts(session)
        self._calls = Calls(shorten)

    def read(self, lines: Iterable[Line]) -> Iterator[Turn | Note | Skipped]:
        """The events of the lines, in order."""
        for line in lines:
            yield from of_records(line, records(line), self._record)
        yield from self._left()

    def _left(self) -> Sequence[Note]:
        """What the person left behind, as far as it is known at the end."""
        return ()

    @abstractmethod
    def _record(self, record: Record, line: Line) -> Given:
        """What one record gives."""
