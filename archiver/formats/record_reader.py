"""Base classes of transcript readers and of formats whose transcripts are files in the agent's own folders.

Functions find an agent's files and name their copies in the archive.
"""

import errno
import logging
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, TypeAlias

from ...core.conversation import Fact, Kind, Note, Session, SessionKind, Skipped, Speaker, Turn
from ...core.home import MARKERS, home_of
from ...core.reports import Unsearched
from ..lines import Line, Reason, Record, clean, clip, records
from .json_values import INPUT_LIMIT, ToolCall, ToolCalls, first_string, mapping
from .transcript_format import (
    Event,
    RecordEvents,
    RecordStamp,
    SessionFacts,
    SkipReason,
    line_events,
    split_program_text,
)

_log = logging.getLogger(__name__)
_IDENTITY = re.compile(
    rb'"(?:id|uuid|ts|at|created|\w*(?:_id|_at|_ts|I[dD]|At|[tT]ime(?:stamp)?(?:Ms)?))"\s*:\s*[-"\d{]'
)
"""Field with an ID or a time in a line."""
_UNSAFE = re.compile(r'[%\\/:*?"<>|\x00-\x1f\x7f\udc80-\udcff]')


def files(
    root: Path, wanted: Callable[[str], bool], *, without: Collection[str] = (), skipped: Unsearched | None = None
) -> Iterator[Path]:
    """Yield the files below a folder whose names `wanted` accepts, sorted. If the root is a file, yield only the root.

    Folders named in `without` and Palaver homes are skipped. Links to folders are not followed: a target inside the
    root is found anyway, and a target outside does not belong to the agent. Skipped Palaver homes, and links to folders
    outside the root, are added to `skipped`. Each unreadable folder is logged as a warning.
    """
    found = Unsearched() if skipped is None else skipped
    real = Path(os.path.realpath(root))
    if (home := home_of(real)) is not None:
        found.homes.add(home)
    elif root.is_file():
        yield root
    else:
        yield from _walk(root, real, wanted, without, found)


def _walk(
    folder: Path, root: Path, wanted: Callable[[str], bool], without: Collection[str], skipped: Unsearched
) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        _log.warning("skipped %s: %s", os.fsencode(folder), error.strerror)
        return
    if any(entry.name in MARKERS for entry in entries):
        skipped.homes.add(folder)
        return
    for entry in entries:
        path = folder / entry.name
        try:
            is_folder, is_file = entry.is_dir(), entry.is_file()
        except OSError as error:
            if error.errno != errno.ELOOP:  # A cycle of links has no target.
                _log.warning("skipped %s: %s", os.fsencode(path), error.strerror)
            continue
        target = Path(os.path.realpath(path)) if entry.is_symlink() and (is_folder or is_file) else path
        if is_folder and entry.name not in without:
            if target is path:
                yield from _walk(path, root, wanted, without, skipped)
            elif not target.is_relative_to(root):
                skipped.links.add(path)
        elif is_file and wanted(entry.name):
            if target is path or (home := home_of(target)) is None:
                yield path
            else:
                skipped.homes.add(home)


def matching(patterns: Iterable[tuple[Path, str]]) -> Iterator[Path]:
    """Yield the existing paths that match patterns.

    Each pattern is a folder and a glob below it, such as `*/state.vscdb`. The paths are sorted within each folder.
    Unlike `Path.glob`, this function raises the first `PermissionError` after yielding every readable path.
    """
    errors: list[PermissionError] = []
    for folder, pattern in patterns:
        yield from sorted(_matching(folder, pattern.split("/"), errors))
    if errors:
        raise errors[0]


def _matching(path: Path, parts: Sequence[str], errors: list[PermissionError]) -> Iterator[Path]:
    try:
        if not parts:
            path.stat()
            yield path
            return
        children = [each for each in path.iterdir() if each.match(parts[0])] if "*" in parts[0] else [path / parts[0]]
    except PermissionError as error:
        errors.append(error)
    except OSError as error:
        _log.debug("nothing at %s: %s", os.fsencode(path), error.strerror)
    else:
        for each in children:
            yield from _matching(each, parts[1:], errors)


def is_unreadable(folder: Path) -> bool:
    """Return whether this user lacks permission to read a folder. Return False if the folder does not exist."""
    try:
        os.scandir(folder).close()
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def is_readable(path: Path) -> bool:
    """Return whether a folder exists and can be read."""
    return path.is_dir() and not is_unreadable(path)


def is_gone(path: Path) -> bool:
    """Return whether nothing exists at a path. Return False if a missing permission prevents the check."""
    try:
        path.lstat()
    except OSError as error:
        return isinstance(error, FileNotFoundError | NotADirectoryError)
    return False


def data_home() -> Path:
    """Return the folder for the data of this user's programs on Linux, which some programs use on macOS too."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share").expanduser()


def archive_name(path: Path, root: Path) -> str:
    """Return the path relative to the root, with unsafe characters percent-encoded.

    If a file is directly in the root, or outside the root, the result begins with the name of the file's folder.
    Example: `sessions/a.jsonl`.
    """
    parts = path.relative_to(root).parts if path.is_relative_to(root) else (path.name,)
    if len(parts) < 2:
        parts = (path.parent.name or "root", path.name)
    return "/".join(map(safe, parts))


def safe(part: str) -> str:
    """Return a path component with percent-encoding for characters that some file systems do not allow."""
    if part.strip(".") == "":
        return part.replace(".", "%2E") or "%"
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]) & 0xFF:02X}", part)


def _is_anonymous(line: Line, events: Iterable[Event]) -> bool:
    """Return whether a line with these events is a message that has neither an ID nor a time."""
    return any(isinstance(event, Turn) for event in events) and not _IDENTITY.search(line.data)


RecordHandler: TypeAlias = "Callable[[Record, RecordStamp], RecordEvents]"


class RecordReader(ABC):
    """Base class of readers that read one transcript record by record.

    At the start of an exchange, a reader discards all state except facts about the whole session. Therefore, reading
    can start at any exchange and yields the same turns.
    """

    def __init__(self, session: Session, *, shorten: bool) -> None:
        self._session, self._shorten = session, shorten
        self._facts = SessionFacts(session)
        self._calls = ToolCalls(shorten)
        self._partial = False
        """True if reading began in the middle of the file, so earlier records may exist."""
        self._only_record = True
        """True if the current record is the only one on its line."""
        self._released: list[Event] = []
        """Delayed events of earlier lines, which are yielded before the events of the current line."""

    def read(self, lines: Iterable[Line]) -> Iterator[Event]:
        """Yield the events of each line. A line that equals the line before it is skipped.

        However, a message without an ID and a time is not skipped, because the user can write the same text twice.
        A reader may delay the events of a line until later lines determine their meaning.
        """
        previous = b""
        events: Sequence[Event] = ()
        for count, line in enumerate(lines):
            self._partial = self._partial or (count == 0 and line.number > 1)
            if line.data == previous and line.data.strip() and not _is_anonymous(line, events):
                yield Skipped(line.number, SkipReason.REPEATED)
                continue
            previous = line.data
            events = self._line(line)
            if self._released:
                yield from self._release()
            yield from events
        self._finish()
        yield from self._release()

    @property
    def _is_subagent(self) -> bool:
        return self._session.kind is SessionKind.SUBAGENT

    def _release(self) -> list[Event]:
        released = self._released.copy()
        self._released.clear()
        return released

    def _line(self, line: Line) -> Sequence[Event]:
        found = self._records(line)
        if isinstance(found, str):
            return [Skipped(line.number, found)]
        self._only_record = len(found) == 1
        return line_events(line, [self._record(record, line) for record in found])

    def _records(self, line: Line) -> list[Record] | Reason:
        return records(line)

    @abstractmethod
    def _record(self, record: Record, line: Line) -> RecordEvents:
        """Return the events of one record, or the reason for skipping it."""

    def _finish(self) -> None:  # noqa: B027 - most readers delay no events
        """Release all delayed events, because no line follows."""

    def _fact_handler(self, fields: Mapping[Fact, str]) -> RecordHandler:
        """Return a handler for records that contain only session facts, such as a title.

        `fields` maps each fact to the name of the field that contains it.
        """

        def handler(record: Record, stamp: RecordStamp) -> RecordEvents:
            facts = {fact: record.get(name) for fact, name in fields.items()}
            return self._facts.notes(stamp.line, facts) or SkipReason.REPEATED

        return handler

    def _header_facts(self, record: Record, line: Line, fields: Mapping[Fact, tuple[str, ...]]) -> RecordEvents:
        """Return the facts in the header of a container's session: those in `fields`, and the ID in the field `id`.

        `fields` maps each fact to the fields that may contain it.
        """
        header = mapping(record["conversation"])
        facts = {fact: first_string(header, *names) for fact, names in {Fact.SESSION: ("id",), **fields}.items()}
        return self._facts.notes(line.number, facts) or SkipReason.REPEATED

    def _prompt(self, text: str, stamp: RecordStamp) -> list[Turn | Note]:
        """Return the events that open an exchange. A text that the program added does not open an exchange.

        In a sub-agent's transcript, the speaker is the host, because the parent agent wrote the prompt.
        """
        typed, added, reminders = split_program_text(text)
        if not typed:
            return [*self._injected(added or reminders, stamp)]
        self._calls.clear()
        speaker = Speaker.HOST if self._is_subagent else Speaker.HUMAN
        prompt = stamp.turn(speaker, Kind.PROMPT, typed)
        return [prompt, *self._injected(added, stamp), *self._facts.location(stamp.line)]

    def _injected(self, text: str, stamp: RecordStamp, *, failed: bool = False) -> list[Turn]:
        """Return a turn for text that the agent's program added, as a list. The list is empty if the text is empty."""
        text = clip(clean(text), INPUT_LIMIT if self._shorten else None)
        return [stamp.turn(Speaker.HOST, Kind.INJECTED, text, failed=failed)] if text else []

    def _compacted(self, summary: object, stamp: RecordStamp) -> list[Turn]:
        """Return a turn with the summary that replaced the earlier conversation in the model's context."""
        text = clean(summary) if isinstance(summary, str) else ""
        return [stamp.turn(Speaker.HOST, Kind.COMPACTION, text or "Conversation compacted")]

    def _user_command(self, command: str, output: str, stamp: RecordStamp, *, tool: str, failed: bool) -> list[Turn]:
        """Return the turns of a shell command that the user ran."""
        return [
            stamp.turn(Speaker.HUMAN, Kind.CALL, f"! {command}", tool=tool, call=stamp.record),
            self._calls.result_of(ToolCall(tool, ""), stamp, stamp.record, output, failed=failed),
        ]


class FolderFormat(ABC):
    """Transcript format that is defined by its folders, its file names and the fields of its records."""

    agent: ClassVar[str]
    reader_class: ClassVar[type[RecordReader]]
    home_variable: ClassVar[str] = ""
    """Environment variable with the agent's data folder, such as `CODEX_HOME`. Empty if there is none."""
    home_folder: ClassVar[str] = ""
    """Default data folder of the agent, relative to the user's home folder, such as `.codex`."""
    root_folders: ClassVar[tuple[str, ...]] = ()
    """Folders that contain transcripts, relative to the agent's data folder, such as `sessions`."""
    other_folders: ClassVar[frozenset[str]] = frozenset()
    """Names of subfolders without transcripts, which are not searched, such as `checkpoints`."""
    suffixes: ClassVar[tuple[str, ...]] = (".jsonl",)
    """Suffixes of transcript files. The tuple is empty if the agent stores all sessions in containers."""
    other_files: ClassVar[frozenset[str]] = frozenset()
    """Names of files without transcripts that have one of the `suffixes`, such as `logs.json`."""
    name_pattern: ClassVar[re.Pattern[str]] = re.compile(r"(?!)")
    """Pattern of file names that only this agent uses for transcripts. The default matches no name."""

    def roots(self) -> list[Path]:
        """Return the existing folders in which the agent stores this user's transcripts."""
        return [folder for folder in self.possible_roots() if folder.is_dir()]

    def possible_roots(self) -> list[Path]:
        """Return the folders in which the agent can store transcripts, including those that do not exist."""
        home = Path(os.environ.get(self.home_variable) or Path.home() / self.home_folder).expanduser()
        return [home / name for name in self.root_folders]

    def encrypted(self) -> list[Path]:
        """Return this user's files with conversations that only the agent can decrypt."""
        return []

    def transcripts(self, root: Path, skipped: Unsearched | None = None) -> Iterator[Path]:
        """Yield every transcript below a folder, sorted."""
        found = files(root, self._has_transcript_name, without=self.other_folders, skipped=skipped)
        return (path for path in found if self._has_transcript_path(path) and self.may_be_transcript(path, root))

    def may_be_transcript(self, path: Path, root: Path) -> bool:
        """Return whether a file below a folder can be a transcript, according to its name and path."""
        inside = path.relative_to(root).parts[:-1]
        return self._has_transcript_name(path.name) and self.other_folders.isdisjoint(inside)

    def matches_name(self, name: str) -> bool:
        """Return whether a file name follows a pattern that only this agent uses for transcripts."""
        return self.name_pattern.fullmatch(name) is not None

    def archive_name(self, path: Path, root: Path) -> str:
        """Return the path relative to the root, with unsafe characters percent-encoded."""
        return archive_name(path, root)

    def recognises(self, records: Sequence[Record]) -> bool:
        """Return whether at least one of these records was written by this agent, judged by its fields."""
        return any(map(self._is_from_agent, records))

    @abstractmethod
    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session of a file, determined from its path and its first lines."""

    def reader(self, session: Session, *, shorten: bool = True) -> RecordReader:
        """Return a reader for one file of a session."""
        return self.reader_class(session, shorten=shorten)

    @abstractmethod
    def _is_from_agent(self, record: Record) -> bool:
        """Return whether a record has fields that only this agent writes."""

    def _has_transcript_name(self, name: str) -> bool:
        return name.endswith(self.suffixes) and name not in self.other_files

    def _has_transcript_path(self, path: Path) -> bool:  # noqa: ARG002 - overridden where the path matters
        """Return whether the agent stores transcripts at this path."""
        return True
