"""Data classes of a conversation, with the origin and trust of its text, and conversion of times.

Every transcript format is parsed into these classes. Lines are 1-based, inclusive, and refer to the raw copy. Bytes
are half-open offsets into the raw copy.

Palaver sets origin and trust when it stores a text, and never increases the trust later.

A time is an integer: the milliseconds since 1970-01-01T00:00Z. Days, and the times that pages show, are in the
display time zone: the zone of the system, unless an entry point selects another one with `use_time_zone`. Instants in
JSON and in files are in UTC.
"""

import re
import time
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import IntEnum, StrEnum
from typing import Annotated, Final, NamedTuple, TypeAlias

from msgspec import Struct, field

from .errors import InvalidDate
from .text import claims_change, nfc

INSTANT: Final = "instant"
"""Annotation of the type `Milliseconds`. It marks an integer as a time."""
Milliseconds: TypeAlias = Annotated[int, INSTANT]


class Speaker(StrEnum):
    """Author of a turn. Only `human` turns were typed by a user."""

    HUMAN = "human"
    ASSISTANT = "assistant"
    TOOL = "tool"
    HOST = "host"
    """Program that runs the agent, such as Claude Code.

    It writes injected reminders, caveats, compaction summaries, and the task of a sub-agent. If the agent records its
    sub-agents in its own transcript, their prose and calls have this speaker too.
    """


class Kind(StrEnum):
    """Kind of a turn, such as a prompt or a tool call."""

    PROMPT = "prompt"
    """Input of a user, or the task that a parent agent gave to a sub-agent (speaker `host`)."""
    PROSE = "prose"
    THINKING = "thinking"
    CALL = "call"
    RESULT = "result"
    INJECTED = "injected"
    COMPACTION = "compaction"
    RECAP = "recap"


class Turn(NamedTuple):
    """One part of a conversation: a prompt, a paragraph, a tool call or a tool result.

    `text` has no NUL, lone surrogates or ANSI escapes, and may be shortened. The archived line is complete. All turns
    of one assistant reply have the same `group`.
    """

    line: int
    speaker: Speaker
    kind: Kind
    text: str
    at: Milliseconds | None = None
    record: str = ""
    """ID that the agent gave to this line, such as a UUID for Claude Code. Empty if the line has no ID."""
    group: str = ""
    tool: str = ""
    call: str = ""
    failed: bool = False
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    active: bool = True
    """False for a turn on a branch that the user abandoned by rewinding."""

    @property
    def is_reply(self) -> bool:
        """True for prose of the agent to which the user speaks. Prose of the host is from one of its sub-agents."""
        return self.kind is Kind.PROSE and self.speaker is Speaker.ASSISTANT


class Fact(StrEnum):
    """Kind of note about a session.

    A later note replaces earlier notes of its kind, unless the description of the kind states another rule.
    """

    SESSION = "session"
    PARENT = "parent"
    """ID of the session that started this sub-agent, or from which this session was forked."""
    AGENT_ID = "agent-id"
    CWD = "cwd"
    BRANCH = "branch"
    VERSION = "version"
    MODEL = "model"
    TITLE = "title"
    """Title of the session: `value` is the text, and `rank` its priority.

    The title with the highest rank is used. Among equal ranks, the latest title is used.
    """
    CONTINUES = "continues"
    SUBAGENT = "subagent"
    """ID of a sub-agent's session that this session started: `about` is the ID of the tool call that started it.

    One session starts several sub-agents, so every note counts.
    """
    PULL_REQUEST = "pull-request"
    USAGE = "usage"
    """Token usage: `value` is "<message id> <input tokens> <output tokens>". The last note for each message ID counts.
    """
    REWOUND = "rewound"
    """Rewind by the user at this line: the turns from line `value` up to this line were abandoned.

    If `value` is empty, the abandoned turns begin before the first line read.
    """


class Note(Struct, frozen=True):
    """Information about a session, such as its title or its working folder."""

    line: int
    fact: Fact
    value: str
    rank: int = 0
    about: str = ""
    """ID of the record to which a title belongs, or of the call that started a sub-agent. Otherwise empty.

    The record may be in another file.
    """


class Skipped(Struct, frozen=True):
    """Line that adds nothing to the database, and the reason for skipping it."""

    line: int
    reason: str


class Span(Struct, frozen=True):
    """Range of an archived file. Lines are 1-based and inclusive. Bytes are half-open."""

    start_line: int
    end_line: int
    start_byte: int
    end_byte: int


class Exchange(Struct, frozen=True):
    """One prompt of the user, with everything up to the next prompt.

    `ordinal` counts from 0 within one file. `tokens_in` and `tokens_out` are the token usage reported by the agent, if
    known. Cached tokens count as input.
    """

    ordinal: int
    span: Span
    turns: tuple[Turn, ...]
    started: Milliseconds | None
    ended: Milliseconds | None
    cwd: str = ""
    branch: str = ""
    tokens_in: int = 0
    tokens_out: int = 0

    @property
    def active_turns(self) -> tuple[Turn, ...]:
        """Turns that the user did not abandon by rewinding. If the user abandoned every turn, all turns."""
        return tuple(turn for turn in self.turns if turn.active) or self.turns

    @property
    def prompt(self) -> str:
        """Text of the prompts, or an empty string if the transcript starts without a prompt."""
        return "\n\n".join(turn.text for turn in self.turns if turn.kind is Kind.PROMPT)

    @property
    def answer(self) -> str:
        """Prose of the last assistant reply that contains prose, or an empty string if there is none."""
        prose = [turn for turn in self.turns if turn.is_reply]
        if not prose:
            return ""
        last = prose[-1]
        return "\n\n".join(turn.text for turn in prose if turn is last or (last.group and turn.group == last.group))

    @property
    def reads(self) -> tuple[str, ...]:
        """Files read, in order of first use, in Unicode normalization form C."""
        return tuple(dict.fromkeys(nfc(path) for turn in self.turns for path in turn.reads))

    @property
    def writes(self) -> tuple[str, ...]:
        """Files modified, in order of first use, in Unicode normalization form C."""
        return tuple(dict.fromkeys(nfc(path) for turn in self.turns for path in turn.writes))


class SessionKind(StrEnum):
    """Kind of a session: a main session, or the session of a sub-agent."""

    MAIN = "main"
    SUBAGENT = "subagent"


UNINDEXED: Final = "unindexed"
"""Key in `Session.links` that marks a session which the user excluded from the index.

The session, its sub-agents and the sessions that continue it are archived but not indexed.
"""


_MODEL_TITLE: Final = range(1, 4)
"""Ranks of titles that a model wrote from the conversation. A lower rank is the first prompt, a higher one a name."""


class Session(Struct):
    """Properties of a session, collected from notes while its lines are parsed."""

    agent: str
    native_id: str
    kind: SessionKind = SessionKind.MAIN
    parent_id: str = ""
    project: str = ""
    cwd: str = ""
    branch: str = ""
    title: str = ""
    title_rank: int = -1
    version: str = ""
    models: list[str] = field(default_factory=list[str])
    started: Milliseconds | None = None
    ended: Milliseconds | None = None
    links: dict[str, str] = field(default_factory=dict[str, str])
    """Targets of links by name: the URL of a pull request, or the ID of a continued session."""
    scope: str = ""
    """ID of the session in which `native_id` is unique, or an empty string if `native_id` is unique for the agent.

    The short IDs that Claude Code gives to sub-agents occur again in other sessions.
    """

    @property
    def claims_change(self) -> bool:
        """True if a model wrote the title and states in it that something was changed, such as `Footer added`."""
        return self.title_rank in _MODEL_TITLE and claims_change(self.title)

    def is_called(self, name: str) -> bool:
        """Return whether a name is the ID of this session, alone or after its scope or agent: `codex/<native_id>`."""
        return name in {self.native_id, f"{self.scope}/{self.native_id}", f"{self.agent}/{self.native_id}"}


class ResumePoint(Struct):
    """Position at which parsing resumes when a file has grown: the start of the last exchange, which can be partial."""

    line: int = 1
    byte: int = 0
    ordinal: int = 0
    coverage: dict[str, int] = field(default_factory=dict[str, int])
    """Number of lines before `line` with each outcome, such as `parsed`."""
    sets_title: bool = False
    """True if the title of the session comes from the last exchange."""


class Trust(IntEnum):
    """Trust level of a text. A text with low trust is never injected into a session and never becomes a golden rule."""

    LOW = 0
    MEDIUM = 1
    HIGH = 2


class Origin(StrEnum):
    """Author of a text, from the most trusted to the least trusted.

    `tool` is output of a program on this machine. `external` is text from other machines, such as a web page.
    """

    HUMAN = "human"
    ASSISTANT = "assistant"
    DOCUMENT = "document"
    IMPORTED = "imported"
    TOOL = "tool"
    EXTERNAL = "external"

    @property
    def trust(self) -> Trust:
        """Trust level of the origin."""
        return _TRUST[self]


_TRUST = {
    Origin.HUMAN: Trust.HIGH,
    Origin.ASSISTANT: Trust.MEDIUM,
    Origin.DOCUMENT: Trust.MEDIUM,
    Origin.IMPORTED: Trust.LOW,
    Origin.TOOL: Trust.LOW,
    Origin.EXTERNAL: Trust.LOW,
}
_RANK = {origin: rank for rank, origin in enumerate(Origin)}


def least(origins: Iterable[Origin]) -> Origin:
    """Return the least trusted of one or more origins.

    A text that combines texts of several origins has this origin.
    """
    return max(origins, key=_RANK.__getitem__)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WHOLE_DAY = 24 * 3600 * 1000
"""Milliseconds per day in UTC."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_RANGE = (ValueError, OverflowError, OSError)
"""Errors of `datetime` for times that the calendar or the C library of the system does not support."""

_display_zone: tzinfo | None = None
"""Time zone of days and shown times. None selects the zone of the system."""


def use_time_zone(zone: tzinfo | None) -> None:
    """Select the time zone of days and shown times in this process. None selects the zone of the system."""
    global _display_zone  # noqa: PLW0603 - like the variable TZ, the zone belongs to the process
    _display_zone = zone


def now() -> Milliseconds:
    """Return the current instant."""
    return time.time_ns() // 1_000_000


def current_day() -> date:
    """Return the current day."""
    return datetime.now(UTC).astimezone(_display_zone).date()


def has_elapsed(period: Milliseconds, since: Milliseconds) -> bool:
    """Return whether a period has elapsed since an instant.

    An instant in the future, which a wrong clock left behind, counts as long ago.
    """
    return not 0 <= now() - since < period


def parse_instant(text: str) -> Milliseconds | None:
    """Return the instant of an RFC 3339 text, or None for other text. The default time zone is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def day_start(text: str) -> Milliseconds:
    """Return the first instant of a day written as YYYY-MM-DD.

    Raises:
        InvalidDate: The text is not a valid day.
    """
    return first_instant(_day(text), _display_zone)


def day_end(text: str) -> Milliseconds:
    """Return the first instant after a day written as YYYY-MM-DD, for use as an exclusive upper bound.

    Raises:
        InvalidDate: The text is not a valid day.
    """
    day = _day(text)
    if day == date.max:
        return first_instant(day, _display_zone) + _WHOLE_DAY
    return first_instant(day + timedelta(days=1), _display_zone)


def first_instant(day: date, zone: tzinfo | None) -> Milliseconds:
    """Return the first instant of a day in a time zone, or in that of the system.

    If midnight is skipped, the day begins when the clock is set forward. A day can have 23 or 25 hours.
    """
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    try:  # `timestamp` interprets a datetime without a zone in that of the system.
        return round(midnight.timestamp() * 1000)
    except _RANGE:
        return round(midnight.replace(tzinfo=UTC).timestamp() * 1000)


def show_day(at: Milliseconds | None) -> str:
    """Format an instant as YYYY-MM-DD, or return `undated`."""
    return show_minute(at)[:10]


def show_minute(at: Milliseconds | None) -> str:
    """Format an instant as YYYY-MM-DD HH:MM. Return `undated` for None and for years outside 1 to 9999."""
    moment = _moment(at)
    return _local(moment).isoformat(" ", "minutes")[:16] if moment else "undated"


def show_instant(at: Milliseconds) -> str:
    """Format an instant in UTC as YYYY-MM-DDTHH:MM:SSZ. Return `undated` for years outside 1 to 9999."""
    moment = _moment(at)
    return f"{moment.replace(tzinfo=None).isoformat('T', 'seconds')}Z" if moment else "undated"


def show_millisecond(at: Milliseconds) -> str:
    """Format an instant in UTC as YYYY-MM-DDTHH:MM:SS.mmmZ. Return `undated` for years outside 1 to 9999."""
    shown = show_instant(at)
    return shown if shown == "undated" else f"{shown[:-1]}.{at % 1000:03}Z"


def _day(text: str) -> date:
    if not _DAY.match(text):
        raise InvalidDate(text)
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidDate(text) from None


def _moment(at: Milliseconds | None) -> datetime | None:
    """Return an instant as a date and time in UTC, or None for years outside 1 to 9999."""
    try:
        return None if at is None else EPOCH + timedelta(milliseconds=at)
    except OverflowError:
        return None


def _local(moment: datetime) -> datetime:
    """Return a time in the display time zone. A time that this zone does not support stays in UTC."""
    try:
        return moment.astimezone(_display_zone)
    except _RANGE:
        return moment
