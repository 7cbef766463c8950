"""Reading one archived file: from where it was left to its last whole line, with an account of every line."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath
from typing import BinaryIO

from ..core.conversation import Exchange, Fact, Kind, Note, Session, Skipped, Turn
from .exchanges import group
from .formats import Event, Format, Reader
from .lines import Line, decode, split
from .store import Place, Resume, Source
from .text import one_line

PARSED = "parsed"
REPEATED = "repeated"
"""The outcome of a line that this or another file brought before, as forks and resumed sessions do."""
_TITLE_LENGTH = 80
_WORKTREE = re.compile(r"[/\\]\.(?:claude[/\\])?worktrees[/\\].*")

Owner = Callable[[str], Place | None]
"""Where a record id was first seen."""


class Reading:
    """One pass over a source's new lines.

    Afterwards `exchanges` holds what they say, from ordinal `first` on; the source counts every line, the session
    knows what its notes told, `records` maps new record ids to lines, and `copied` names the sources repeated here.
    """

    def __init__(self, known: Format, session: Session, source: Source, owner: Owner) -> None:
        self._reader = known.reader(session)
        self._session, self._source, self._owner = session, source, owner
        self._outcomes: list[str] = []
        self._end = source.resume.byte
        self.first = source.resume.ordinal
        self.exchanges: list[Exchange] = []
        self.records: dict[str, int] = {}
        self.copied: set[int] = set()
        self.titles: list[Note] = []
        """Titles that name a record, which may belong to another session."""

    def run(self, file: BinaryIO) -> None:
        """Read to the end. A last line that is still being written is left for the next time."""
        start = self._source.resume
        lines = self._counted(split(file, start_byte=start.byte, start_line=start.line))
        for event in group(_Fresh(self._reader, self._is_repeated), lines, first_ordinal=start.ordinal):
            match event:
                case Exchange():
                    self.exchanges.append(event)
                case Note():
                    self._note(event)
                case Skipped(line, reason):
                    self._outcomes[line - start.line] = reason
        self._describe()
        self._account()

    def _counted(self, lines: Iterable[Line]) -> Iterator[Line]:
        for line in lines:
            if not line.complete and not (line.data and isinstance(decode(line.data), list)):
                return
            self._outcomes.append(PARSED)
            self._end = line.end
            yield line

    def _is_repeated(self, turn: Turn) -> bool:
        """Whether the turn's record is known from another line, here or elsewhere."""
        if not turn.record:
            return False
        line = self.records.get(turn.record)
        if line is None:
            place = self._owner(turn.record)
            if place is not None and place != (self._source.id, turn.line):
                self.copied.add(place[0])
                return True
            self.records[turn.record] = turn.line
            return False
        return line != turn.line

    def _note(self, note: Note) -> None:
        session = self._session
        match note.fact:
            case Fact.TITLE if note.about:
                self.titles.append(note)
            case Fact.TITLE:
                entitle(session, note)
            case Fact.CWD:
                session.cwd = session.cwd or note.value
            case Fact.BRANCH:
                session.branch = note.value
            case Fact.VERSION:
                session.version = note.value
            case Fact.MODEL if note.value not in session.models:
                session.models.append(note.value)
            case Fact.PARENT:
                session.parent_id = session.parent_id or note.value
            case Fact.PULL_REQUEST | Fact.CONTINUES:
                session.links[str(note.fact)] = note.value
            case _:
                pass

    def _describe(self) -> None:
        """What follows from the exchanges: the session's time, project and, without a better one, title."""
        session = self._session
        times = [at for exchange in self.exchanges for at in (exchange.started, exchange.ended) if at is not None]
        session.started = min([*times, *([session.started] if session.started is not None else [])], default=None)
        session.ended = max([*times, *([session.ended] if session.ended is not None else [])], default=None)
        session.project = session.project or project_of(session.cwd) or _folder_of(self._source.archived)
        prompt = next((exchange.prompt for exchange in self.exchanges if exchange.prompt), "")
        if prompt and session.title_rank < 0:
            session.title, session.title_rank = one_line(prompt, _TITLE_LENGTH), 0

    def _account(self) -> None:
        """Count the lines, and remember where to go on: at the start of the last exchange, which may still grow."""
        source, start = self._source, self._source.resume
        source.lines = start.line - 1 + len(self._outcomes)
        source.coverage = dict(Counter(start.coverage) + Counter(self._outcomes))
        source.parsed = self._end
        if self.exchanges:
            last = self.exchanges[-1]
            before = Counter(start.coverage) + Counter(self._outcomes[: last.span.start_line - start.line])
            source.resume = Resume(last.span.start_line, last.span.start_byte, last.ordinal, dict(before))


class _Fresh(Reader):
    """A reader that says of repeated turns only that they are."""

    def __init__(self, reader: Reader, is_repeated: Callable[[Turn], bool]) -> None:
        self._reader, self._is_repeated = reader, is_repeated

    def read(self, lines: Iterable[Line]) -> Iterator[Event]:
        for event in self._reader.read(lines):
            if isinstance(event, Turn) and self._is_repeated(event):
                yield Skipped(event.line, REPEATED)
            else:
                yield event


def entitle(session: Session, note: Note) -> None:
    """Give the session a title unless it has one of a higher rank."""
    if note.rank >= session.title_rank:
        session.title, session.title_rank = one_line(note.value, _TITLE_LENGTH), note.rank


def project_of(cwd: str) -> str:
    """The name of the project a folder belongs to: its last part, or that of the repository a worktree is of."""
    parts = [part for part in re.split(r"[/\\]+", _WORKTREE.sub("", cwd)) if part]
    return parts[-1] if parts else ""


def _folder_of(archived: str) -> str:
    return PurePosixPath(archived).parts[1]
