"""Protocols for the transcript formats of agents, and the events of a transcript record.

Some agents store sessions in containers: databases or exports with several sessions, or sessions in several files.

The events of a record are turns of the conversation, notes on the session, or a reason for skipping it.

The programs of agents send text in the name of the user, such as notifications, reminders and output of hooks. All
formats detect it here, so that such text is never the user's word, whichever agent recorded it.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct, field

from ...core.conversation import Fact, Kind, Milliseconds, Note, Session, Skipped, Speaker, Turn
from ...core.reports import Unsearched
from ..lines import Line, Record, clean, one_line

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

    def encrypted(self) -> list[Path]:
        """Return this user's files with conversations that only the agent can decrypt."""
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


RecordEvents: TypeAlias = "Sequence[Turn | Note] | str"
"""Turns and notes of one record, or the reason for skipping the record.

An empty sequence means that the reader delays the events of the record.
"""


class SkipReason(StrEnum):
    """Reason why a record of a known type has no events."""

    BOOKKEEPING = "bookkeeping"
    """Internal state of the agent's program."""
    CONTEXT = "context"
    """Text that the program sent to the model without showing it to the user."""
    COPIED_HEADER = "copied-header"
    """Header of another session, copied by a fork."""
    EMPTY = "empty"
    """Message without text."""
    ENCRYPTED = "encrypted"
    """Reasoning or messages that only the vendor can decrypt."""
    FILE_HISTORY = "file-history"
    """Snapshots of the user's files."""
    HOOK_OUTPUT = "hook-output"
    """Output of a hook."""
    HOOK_PROGRESS = "hook-progress"
    """Notice that a hook started, without its output."""
    PROGRESS = "progress"
    """Output of a running command, repeated in the command's result."""
    SEARCH_PROGRESS = "search-progress"
    """Query and number of results of a running web search, repeated in the search's result."""
    SERVER_PROGRESS = "server-progress"
    """State of a running MCP tool, without its output."""
    SUBAGENT = "subagent"
    """Message of a sub-agent, which is read as a part of the sub-agent's own conversation."""
    WAITING = "waiting"
    """Notice that the program waits for a task that runs in the background."""
    QUEUED = "queued"
    """Queued prompt that is repeated on a later line, or that the program queued instead of the user."""
    REPEATED = "repeated"
    """Content that another line contains as well, possibly in more detail."""
    REPLACED = "replaced"
    """Earlier version of a message whose final version is on a later line."""
    WITHDRAWN = "withdrawn"
    """Queued prompt that the user moved back into the input line."""


UUID = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
"""Pattern of a UUID."""
_TITLE_RANK = 4
"""Rank of titles from agents that record titles in one way only. Titles of lower rank never replace them."""

# IDs such as `call_1` or `e7` occur in every session.
_UNIQUE_ID = re.compile(rf"[0-9A-Za-z]{{16,}}|{UUID}")


def unknown_type(kind: str) -> str:
    """Return the reason for skipping a record of a type that the reader does not support."""
    return f"unknown-type:{one_line(clean(kind))}"


def record_id(native_id: str, data: bytes) -> str:
    """Return a record ID that is equal for all copies of the record.

    The result is the agent's own ID if that is unique across sessions. Otherwise it is a digest of the line.
    """
    return native_id if is_unique(native_id) else hashlib.blake2b(data, digest_size=12).hexdigest()


def is_unique(native_id: str) -> bool:
    """Return whether an ID is long enough to be unique across sessions, unlike `msg-1`."""
    return _UNIQUE_ID.search(native_id) is not None


def usage(reply: str, tokens_in: int, tokens_out: int) -> str:
    """Return the value of a `Fact.USAGE` note, such as `<reply> 1200 80`, or an empty string if both counts are 0."""
    return f"{reply} {tokens_in} {tokens_out}" if tokens_in or tokens_out else ""


def line_events(line: Line, found: Sequence[RecordEvents]) -> Sequence[Event]:
    """Return the events of all records on a line.

    If there are none, return one `Skipped` event with the first reason.
    """
    events = [event for each in found if not isinstance(each, str) for event in each]
    reason = next((each for each in found if isinstance(each, str)), "")
    return events or ([Skipped(line.number, reason)] if reason else [])


class RecordStamp(Struct, frozen=True):
    """Line, time and ID of one record, shared by all of its turns."""

    line: int
    at: Milliseconds | None = None
    record: str = ""

    def turn(
        self,
        speaker: Speaker,
        kind: Kind,
        text: str,
        *,
        group: str = "",
        tool: str = "",
        call: str = "",
        failed: bool = False,
        reads: tuple[str, ...] = (),
        writes: tuple[str, ...] = (),
    ) -> Turn:
        """Return a turn with the line, time and ID of this record."""
        return Turn(self.line, speaker, kind, text, self.at, self.record, group, tool, call, failed, reads, writes)

    def reply(self, kind: Kind, text: str, group: str = "") -> list[Turn]:
        """Return a list with one assistant turn of prose or thinking. The list is empty if the text is empty."""
        text = clean(text)
        return [self.turn(Speaker.ASSISTANT, kind, text, group=group)] if text else []


class SessionFacts(Struct):
    """Facts about a session, such as its working folder, that notes have already reported."""

    session: Session
    _known: dict[Fact, str] = field(default_factory=dict[Fact, str])

    def note(self, line: int, fact: Fact, value: object) -> list[Note]:
        """Return a list with one note. The list is empty if the value is empty, already reported or not text."""
        value = clean(value) if isinstance(value, str) else ""
        value = one_line(value) if fact is Fact.TITLE else value
        if not value or self._known.get(fact) == value:
            return []
        self._known[fact] = value
        return [Note(line, fact, value, _TITLE_RANK if fact is Fact.TITLE else 0)]

    def notes(self, line: int, values: Mapping[Fact, object]) -> list[Note]:
        """Return a note for each fact whose value is new."""
        return [note for fact, value in values.items() for note in self.note(line, fact, value)]

    def forget(self, *facts: Fact) -> None:
        """Forget the reported values of these facts, so that their next values are reported even if unchanged."""
        for fact in facts:
            self._known.pop(fact, None)

    def location(self, line: int) -> list[Note]:
        """Return notes with the working folder and the Git branch at the start of an exchange."""
        facts = {
            Fact.CWD: self._known.get(Fact.CWD, self.session.cwd),
            Fact.BRANCH: self._known.get(Fact.BRANCH, self.session.branch),
        }
        return [Note(line, fact, value) for fact, value in facts.items() if value]


REMINDERS: Final = frozenset(
    {"ide_diagnostics", "ide_opened_file", "ide_selection", "new-diagnostics", "system-reminder"}
)
"""Tags of passages that a program or an editor adds to a prompt, and that say nothing about the conversation."""
TAGS: Final = REMINDERS | {
    "background-task-notification",
    "codex_delegation",
    "codex_internal_context",
    "cross-session-message",
    "environment_context",
    "hook_context",
    "hook_prompt",
    "internal_model_context",
    "loaded_context",
    "local-command-caveat",
    "local-command-stderr",
    "local-command-stdout",
    "recommended_plugins",
    "session-start-hook",
    "session_context",
    "subagent_notification",
    "task-notification",
    "teammate-message",
    "turn_aborted",
    "user-prompt-submit-hook",
    "user_action",
    "user_instructions",
}
"""Tags of all passages that the programs of agents write. Each name contains `-` or `_`, unlike the tags of HTML."""
NOTICES: Final = (
    "[SYSTEM NOTIFICATION - NOT USER INPUT]",
    "Caveat: The messages below were generated by the user while running local commands",
    "Stop hook feedback:",
)
"""Beginnings of texts that a program writes without tags. They end where a tag or the text ends."""
HINT: Final = "Note: The user's next message may contain a correction or preference."
"""Beginning of a paragraph that Claude Code adds to the user's reason for refusing a tool call."""
_AFTER: Final = "Read the output file to retrieve the result:"
"""Beginning of the line that follows some notifications."""


class SplitText(NamedTuple):
    """Text that was recorded as a prompt: the part that was typed, and the passages that the program added."""

    typed: str
    added: str = ""
    """Content of the passages, without `REMINDERS`."""
    reminders: str = ""
    """Content of the passages in `REMINDERS`."""


def split_program_text(text: str) -> SplitText:
    """Separate the passages of the program from the text that was typed.

    Only passages on lines of their own are separated, because users also quote the tags. A passage of a program can
    quote its own tag, so it ends at the closing tag that matches.
    """
    notice = ""
    if text.startswith(NOTICES):
        opening = _ANY.search(text)
        notice = text[: opening.start()] if opening else text
    typed, passages = _separated(text[len(notice) :], _ANY)
    added = [notice, *(content for tag, content in passages if tag not in REMINDERS)]
    reminders = [content for tag, content in passages if tag in REMINDERS]
    if passages and typed.startswith(_AFTER):
        typed = ""
    return SplitText(typed, _joined(added), _joined(reminders))


def without_reminders(text: str) -> str:
    """Return a text without the passages in `REMINDERS`, which are also added to the results of tools."""
    return _separated(text, _REMINDER)[0] if "</" in text else text.strip()


def _opening(tags: Iterable[str]) -> re.Pattern[str]:
    return re.compile(rf"^[ \t]*<({'|'.join(sorted(tags))})(?=[\s>])[^<>]*>", re.MULTILINE)


_ANY: Final = _opening(TAGS)
_REMINDER: Final = _opening(REMINDERS)


def _separated(text: str, opening: re.Pattern[str]) -> tuple[str, list[tuple[str, str]]]:
    """Return a text without its passages, and the tag and the content of each passage."""
    kept, passages, done, at = list[str](), list[tuple[str, str]](), 0, 0
    while found := opening.search(text, at):
        end = _end(text, found)
        at = max(end, found.end())
        if end >= 0:
            kept.append(text[done : found.start()])
            passages.append((found[1], text[found.end() : end].rpartition("</")[0]))
            done = end
    return "".join((*kept, text[done:])).strip(), passages


def _joined(texts: Iterable[str]) -> str:
    return "\n".join(filter(None, map(str.strip, texts)))


def _end(text: str, opening: re.Match[str]) -> int:
    """Return the end of the passage that a tag opens, or -1 if no closing tag ends a line."""
    depth, last = 0, -1
    for tag in re.finditer(rf"<(/?){opening[1]}(?=[\s>])[^<>]*>", text[opening.start() :]):
        depth += -1 if tag[1] else 1
        end = opening.start() + tag.end()
        if tag[1] and not text[end:].partition("\n")[0].strip():
            last = end
            if depth <= 0:
                return end
    return last
