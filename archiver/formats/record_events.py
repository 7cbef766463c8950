"""Events of one transcript record: turns of the conversation, notes on the session, or a reason for skipping it."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct, field

from ...core.conversation import Fact, Kind, Milliseconds, Note, Session, Skipped, Speaker, Turn
from ..files.clipping import clean, one_line
from ..files.lines import Line
from .transcript_format import Event

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
