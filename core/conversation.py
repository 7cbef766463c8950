"""What was said: the values that every transcript format is read into.

Times are integers, milliseconds since 1970-01-01T00:00Z. Lines are 1-based and inclusive and refer to the
*archived* copy of a transcript; bytes are half-open offsets into the same copy.
"""

from enum import StrEnum
from typing import Annotated, Final, NamedTuple, TypeAlias

from msgspec import Struct, field

INSTANT: Final = "instant"
"""Mark of a type whose values are instants."""
Milliseconds: TypeAlias = Annotated[int, INSTANT]


class Speaker(StrEnum):
    """Who produced a turn. Only `human` was typed by a person."""

    HUMAN = "human"
    ASSISTANT = "assistant"
    TOOL = "tool"
    HOST = "host"
    """The agent's own program: injected reminders, caveats, compaction summaries, a sub-agent's task."""


class Kind(StrEnum):
    """What a turn is."""

    PROMPT = "prompt"
    """What a person typed, or the task that a parent agent gave a sub-agent (speaker `host`)."""
    PROSE = "prose"
    THINKING = "thinking"
    CALL = "call"
    RESULT = "result"
    INJECTED = "injected"
    COMPACTION = "compaction"
    RECAP = "recap"


class Turn(NamedTuple):
    """One piece of a conversation: a prompt, a paragraph, a tool call or its result.

    `text` is what is worth showing and finding, already free of NUL, lone surrogates and ANSI colours, and may be
    shortened; the archived line is the whole truth. `group` is equal for all turns of one assistant reply.
    """

    line: int
    speaker: Speaker
    kind: Kind
    text: str
    at: Milliseconds | None = None
    record: str = ""
    """The agent's own id of this line (a UUID for Claude Code); empty when there is none."""
    group: str = ""
    tool: str = ""
    call: str = ""
    failed: bool = False
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    active: bool = True
    """False on a branch that the person rewound and left."""


class Fact(StrEnum):
    """What a note tells about the session as a whole. Later notes replace earlier ones unless said otherwise."""

    SESSION = "session"
    PARENT = "parent"
    """The session that sent a sub-agent out, or that a fork was made from, which said first what the fork repeats."""
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
    """The person went back and asked anew on this line: the turns from line `value` up to it were left behind. An
    empty `value` means that they begin before the place where reading began."""


class Note(Struct, frozen=True):
    """Something a line says about the session rather than in the conversation."""

    line: int
    fact: Fact
    value: str
    rank: int = 0
    about: str = ""
    """For titles: the record id the title belongs to, when the line names one (it may live in another file)."""


class Skipped(Struct, frozen=True):
    """A line that yields nothing, and the named reason why."""

    line: int
    reason: str


class Span(Struct, frozen=True):
    """A stretch of an archived file: lines 1-based inclusive, bytes half-open."""

    start_line: int
    end_line: int
    start_byte: int
    end_byte: int


class Exchange(Struct, frozen=True):
    """One thing a person asked and everything that followed until the next thing they asked.

    `ordinal` counts from 0 within one file. `tokens_in` and `tokens_out` are what the agent's own model used for it, as
    far as the agent said; those found in a cache count as tokens in.
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
        """What was asked; empty when the transcript starts without a prompt."""
        return "\n\n".join(turn.text for turn in self.turns if turn.kind is Kind.PROMPT)

    @property
    def answer(self) -> str:
        """The last prose the assistant wrote; empty when it only used tools."""
        prose = [turn for turn in self.turns if turn.kind is Kind.PROSE]
        if not prose:
            return ""
        last = prose[-1]
        return "\n\n".join(turn.text for turn in prose if turn is last or (last.group and turn.group == last.group))

    @property
    def reads(self) -> tuple[str, ...]:
        """Files read, in first-seen order."""
        return tuple(dict.fromkeys(path for turn in self.turns for path in turn.reads))

    @property
    def writes(self) -> tuple[str, ...]:
        """Files modified, in first-seen order."""
        return tuple(dict.fromkeys(path for turn in self.turns for path in turn.writes))


class SessionKind(StrEnum):
    """How a transcript came to be."""

    MAIN = "main"
    SUBAGENT = "subagent"


UNINDEXED: Final = "unindexed"
"""The link of a session that its person wants in the copies alone, with its sub-agents and all that goes on from it."""


class Session(Struct):
    """What is known of a session so far. Filled note by note while its lines are read."""

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
