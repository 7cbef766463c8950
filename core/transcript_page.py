"""Values of a page of a conversation: its exchanges as steps. They contain plain text and no markup."""

from enum import StrEnum

from msgspec import Struct

from .conversation import Milliseconds, SessionKind
from .tokens import TokenCounts


class StepKind(StrEnum):
    """Kind of a step."""

    PROMPT = "prompt"
    TASK = "task"
    """Prompt that a parent agent gave to a sub-agent."""
    PROSE = "prose"
    ANSWER = "answer"
    """Answer of the user to a question of the agent, or the user's reason for refusing a call."""
    THINKING = "thinking"
    RUN = "run"
    """Tool calls without prose between them."""
    SUBAGENT = "subagent"
    """Call that started a sub-agent."""
    COMPACTION = "compaction"
    RECAP = "recap"
    NOTICE = "notice"
    """Text that the agent's program added."""


class Outcome(StrEnum):
    """Outcome of a tool call."""

    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"
    """The user refused the call."""
    MISSING = "no result"


class Subagent(Struct, frozen=True):
    """Session of a sub-agent that a call started: its name in addresses, and its duration in seconds."""

    session: str
    seconds: float | None = None


class Call(Struct, frozen=True):
    """Tool call in one line.

    Attributes:
        line: Line of the call in the raw copy.
        position: Position of the call among the turns of its line, from 0.
        tool: Name of the tool, such as `Edit`.
        subject: What the call applies to, on one line: a path, a command or a pattern.
        kind: Kind of the tool: edit, read, search, shell, web, or an empty string.
        paths: Files that the call changed.
        added: Number of lines that an edit added, or None if unknown. `removed` likewise.
        checked: Name of the check that a command ran, such as `tests`, or an empty string.
        result_line: Line of the result, or None if no result is recorded.
        size: Number of characters of the stored result.
        reason: First line of the result of a failed call.
        seconds: Time from the call to its result.
    """

    line: int
    position: int
    tool: str
    subject: str
    kind: str = ""
    paths: tuple[str, ...] = ()
    outcome: Outcome = Outcome.DONE
    added: int | None = None
    removed: int | None = None
    checked: str = ""
    result_line: int | None = None
    size: int = 0
    reason: str = ""
    seconds: float | None = None
    subagent: Subagent | None = None


class Step(Struct, frozen=True):
    """Part of an exchange: a text, or tool calls.

    Attributes:
        line: First line of the step in the raw copy, and `last_line` its last line.
        position: Position of the step's first turn among the turns of its line, from 0.
        text: Text of the step, at most `clipping.BLOCK` characters.
        hidden: Number of characters that were left out at the end of the text.
        calls: Calls of a run or of a sub-agent, in order.
        summary: One line that describes the calls.
        rewound: True on a branch that the user abandoned by a rewind.
        failed: True for the notice of an error.
    """

    kind: StepKind
    line: int
    last_line: int
    position: int = 0
    text: str = ""
    hidden: int = 0
    at: Milliseconds | None = None
    calls: tuple[Call, ...] = ()
    summary: str = ""
    rewound: bool = False
    failed: bool = False


class ExchangeSteps(Struct, frozen=True):
    """Steps of one exchange, or those of its steps that fit on a page.

    Attributes:
        number: Number of the exchange in its file, from 1.
        heading: First words of the prompt.
        continued: True if earlier steps of the exchange are on an earlier page.
        continues: True if later steps of the exchange are on a later page.
        seconds: Time from the first to the last turn of the whole exchange.
        usage: Tokens of the whole exchange without sub-agents, or None if the agent recorded none.
        is_partial: True if the output of a reply is larger than its count in `usage`.
        id: Public ID of the exchange, such as `ex-12`.
    """

    number: int
    start_line: int
    end_line: int
    heading: str
    steps: tuple[Step, ...]
    started: Milliseconds | None = None
    seconds: float | None = None
    usage: TokenCounts | None = None
    is_partial: bool = False
    continued: bool = False
    continues: bool = False
    id: str = ""


class TranscriptPage(Struct, frozen=True):
    """Page of a session: consecutive steps of one file.

    Attributes:
        part: Number of the file among the files of the session, from 1.
        parts: Number of files.
        earlier: Line before which the earlier page ends, or None on the first page.
        later: Line at which the later page begins, or None on the last page.
        total_lines: Number of lines of the file.
        copied_lines: First lines that repeat another session, whose name in addresses is `copied_from`.
    """

    part: int
    parts: int
    exchanges: tuple[ExchangeSteps, ...]
    total_lines: int
    earlier: int | None = None
    later: int | None = None
    copied_from: str = ""
    copied_lines: int = 0

    @property
    def first_line(self) -> int:
        """First line on the page, or 0 on an empty page."""
        return next((step.line for exchange in self.exchanges for step in exchange.steps), 0)

    @property
    def last_line(self) -> int:
        """Last line on the page, or 0 on an empty page."""
        return max((step.last_line for exchange in self.exchanges for step in exchange.steps), default=0)


class CardFact(Struct, frozen=True):
    """Fact of a session card with its label, and the line that proves it, or None."""

    label: str
    text: str
    line: int | None


class SessionHeader(Struct, frozen=True):
    """Description of a session above its pages.

    Attributes:
        id: Name of the session in addresses. `parent` likewise: the session that started or preceded this one.
        facts: Facts of the session card.
        subagents: Number of sub-agents.
    """

    id: str
    session_id: str
    title: str
    kind: SessionKind
    agent: str
    project: str
    cwd: str
    branch: str
    models: tuple[str, ...]
    started: Milliseconds | None
    ended: Milliseconds | None
    exchanges: int
    facts: tuple[CardFact, ...] = ()
    parent: str = ""
    parent_title: str = ""
    pull_request: str = ""
    subagents: int = 0


class DiffLine(Struct, frozen=True):
    """Line of a diff. `sign` is `+`, `-`, a space, or `@` for a gap."""

    sign: str
    text: str


class FileDiff(Struct, frozen=True):
    """Change of one file by one call."""

    path: str
    lines: tuple[DiffLine, ...]
    added: int
    removed: int
    hidden: int = 0


class ClippedText(Struct, frozen=True):
    """Text of at most `clipping.BLOCK` characters, and the number of characters left out at its end."""

    text: str
    hidden: int = 0


class Picture(Struct, frozen=True):
    """Picture on a line of a transcript: its position among the pictures of the line, media type and size in bytes."""

    line: int
    position: int
    media_type: str
    size: int


class CallDetail(Struct, frozen=True):
    """Tool call that was opened: its input or its changes, and its result.

    Attributes:
        input: Input of the call. Empty if `diffs` contains it.
        result_position: Position of the result among the turns of its line.
    """

    call: Call
    input: ClippedText
    output: ClippedText
    diffs: tuple[FileDiff, ...] = ()
    pictures: tuple[Picture, ...] = ()
    result_position: int = 0


class OutlinePrompt(Struct, frozen=True):
    """Prompt in the outline of a session."""

    number: int
    part: int
    line: int
    text: str
    at: Milliseconds | None
    rewound: bool = False
    compacted: bool = False
    """True if a compaction precedes the prompt's exchange or is in it."""


class FileEdits(Struct, frozen=True):
    """All edits of one file in a session, in order, each with the part of the session."""

    path: str
    edits: tuple[tuple[int, Call], ...]


class SubagentAnswer(Struct, frozen=True):
    """Answer of a sub-agent in the session that started it.

    Attributes:
        parent: Name of this session in addresses.
        part: Number of its file with the answer.
        line: Line of the answer or, without an answer, of the call.
        position: Position of the answer on its line.
        text: The answer, or an empty text if none is recorded.
        outcome: Outcome of the call.
    """

    parent: str
    part: int
    line: int
    position: int
    text: ClippedText
    outcome: Outcome


class FoundText(Struct, frozen=True):
    """Match of a text in a session: the text before, the match itself and the text after it."""

    part: int
    line: int
    kind: str
    before: str
    match: str
    after: str
