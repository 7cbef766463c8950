"""Conversations: the values that every transcript format is parsed into.

Times are milliseconds since 1970-01-01T00:00Z. Lines are 1-based, inclusive, and refer to the archived raw copy. Bytes
are half-open offsets into the same copy.
"""

from enum import StrEnum
from typing import Annotated, Final, NamedTuple, TypeAlias

from msgspec import Struct, field

INSTANT: Final = "instant"
"""Mark of a type whose values are instants."""
Milliseconds: TypeAlias = Annotated[int, INSTANT]


class Speaker(StrEnum):
    """Author of a turn. Only `human` was typed by a user."""

    HUMAN = "human"
    ASSISTANT = "assistant"
    TOOL = "tool"
    HOST = "host"
    """The agent program: injected reminders, caveats, compaction summaries, a sub-agent's task."""


class Kind(StrEnum):
    """Kinds of turns."""

    PROMPT = "prompt"
    """Input of a user, or the task that a parent agent gave a sub-agent (speaker `host`)."""
    PROSE = "prose"
    THINKING = "thinking"
    CALL = "call"
    RESULT = "result"
    INJECTED = "injected"
    COMPACTION = "compaction"
    RECAP = "recap"


class Turn(NamedTuple):
    """One part of a conversation: a prompt, a paragraph, a tool call or its result.

    `text` has no NUL, lone surrogates or ANSI escapes, and may be shortened; the archived line is complete. `group` is
    equal for all turns of one assistant reply.
    """

    line: int
    speaker: Speaker
    kind: Kind
    text: str
    at: Milliseconds | None = None
    record: str = ""
    """The agent's id of this line (a UUID for Claude Code); empty if there is none."""
    group: str = ""
    tool: str = ""
    call: str = ""
    failed: bool = False
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    active: bool = True
    """False on a branch that the user went back from."""


class Fact(StrEnum):
    """Kinds of notes about a session. Later notes replace earlier ones unless stated otherwise."""

    SESSION = "session"
    PARENT = "parent"
    """Session that started a sub-agent, or that a fork repeats."""
    AGENT_ID = "agent-id"
    CWD = "cwd"
    BRANCH = "branch"
    VERSION = "version"
    MODEL = "model"
    TITLE = "title"
    """`value` is the title, `rank` its precedence: the highest rank wins, the latest among equals."""
    CONTINUES = "continues"
    PULL_REQUEST = "pull-request"
    USAGE = "usage"
    """`value` is "<message id> <input tokens> <output tokens>"; the last one per message id counts."""
    REWOUND = "rewound"
    """The user went back and asked again on this line: the turns from line `value` up to it were abandoned.

    An empty `value` means that they begin before the first line read.
    """


class Note(Struct, frozen=True):
    """Statement of a line about the session rather than the conversation."""

    line: int
    fact: Fact
    value: str
    rank: int = 0
    about: str = ""
    """For titles: id of the record with this title, if named; it may be in another file."""


class Skipped(Struct, frozen=True):
    """Line without content for the archive, and the reason."""

    line: int
    reason: str


class Span(Struct, frozen=True):
    """Range of an archived file: lines 1-based inclusive, bytes half-open."""

    start_line: int
    end_line: int
    start_byte: int
    end_byte: int


class Exchange(Struct, frozen=True):
    """One prompt of the user and everything until the next prompt.

    `ordinal` counts from 0 within one file. `tokens_in` and `tokens_out` are the agent's own usage, as far as it is
    known; cached tokens count as input.
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
    def prompt(self) -> str:
        """Text of the prompts; empty if the transcript starts without one."""
        return "\n\n".join(turn.text for turn in self.turns if turn.kind is Kind.PROMPT)

    @property
    def answer(self) -> str:
        """Last prose of the assistant; empty if it only used tools."""
        prose = [turn for turn in self.turns if turn.kind is Kind.PROSE]
        if not prose:
            return ""
        last = prose[-1]
        return "\n\n".join(turn.text for turn in prose if turn is last or (last.group and turn.group == last.group))

    @property
    def reads(self) -> tuple[str, ...]:
        """Files read, in order of first use."""
        return tuple(dict.fromkeys(path for turn in self.turns for path in turn.reads))

    @property
    def writes(self) -> tuple[str, ...]:
        """Files modified, in order of first use."""
        return tuple(dict.fromkeys(path for turn in self.turns for path in turn.writes))


class SessionKind(StrEnum):
    """Origin of a transcript."""

    MAIN = "main"
    SUBAGENT = "subagent"


UNINDEXED: Final = "unindexed"
"""Link of a session that is archived but not indexed, together with its sub-agents and continuations."""


class Session(Struct):
    """Properties of a session, filled note by note while its lines are parsed."""

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
    """Pull requests and continued sessions: name -> address or id."""


class ResumePoint(Struct):
    """Position from which parsing continues after a file grew: the start of its last exchange, which may still grow."""

    line: int = 1
    byte: int = 0
    ordinal: int = 0
    coverage: dict[str, int] = field(default_factory=dict[str, int])
    """Lines before `line`, by outcome."""
    entitles: bool = False
    """True if that exchange gave its session the title."""
