"""Answers to questions about past conversations. Their findings cite observations and transcript lines."""

from enum import StrEnum

from msgspec import Struct

from .amount import NanoDollars
from .conversation import Milliseconds
from .results import Hit


class FindingKind(StrEnum):
    """Kind of a finding. Answers list findings in this order."""

    COMMAND = "command"
    DECISION = "decision"
    FIX = "fix"
    PATTERN = "pattern"
    GOTCHA = "gotcha"
    DOCUMENT = "document"
    OTHER = "other"


class AnswerLabel(StrEnum):
    """Label of the findings: what they are, and so how far they can be trusted."""

    BEST = "best answer"
    CLOSEST = "closest passages"
    LATEST = "latest entries"
    OPEN = "open items"


class CitedSource(Struct, frozen=True):
    """Item of the archive, or lines of a transcript, that a finding cites.

    Attributes:
        id: Public ID of an observation, exchange or memory. Empty for a citation of lines only.
        label: Short name of the conversation in the answer: the first characters of its session ID.
        path: Path relative to the archive. Empty for a memory.
        exists: False if the archive does not contain the item or the lines.
        read: False if a language model cited the item or the lines, but no tool returned them to it.
    """

    id: str = ""
    session_id: str = ""
    label: str = ""
    path: str = ""
    start_line: int = 0
    end_line: int = 0
    exists: bool = True
    read: bool = True


class Finding(Struct, frozen=True):
    """Claim with its sources.

    Attributes:
        text: Sentences from the archive, shortened at the end of a sentence or clause.
        supported: False if no source of the finding exists.
        superseded_by: ID of the later finding that replaces this one.
        contradicts: IDs of findings that contradict this one.
    """

    kind: FindingKind
    text: str
    sources: tuple[CitedSource, ...]
    at: Milliseconds | None = None
    supported: bool = True
    superseded_by: str = ""
    contradicts: tuple[str, ...] = ()


class CitedSession(Struct, frozen=True):
    """Conversation that an answer cites."""

    label: str
    session_id: str
    title: str
    project: str
    path: str
    at: Milliseconds | None = None


class AnswerReceipt(Struct, frozen=True):
    """Costs of an answer, in estimated tokens.

    Attributes:
        tokens: Tokens of the printed answer, including the receipt.
        read_tokens: Tokens of the search results, details and lines that were read for the answer.
        transcript_tokens: Tokens of the cited conversations, with tool calls and shortened tool results.
        searches: Number of searches. `details` is the number of entries read in full, and `reads` the number of
            excerpts read from transcripts.
        cost: Money spent on a language model, including the highest possible cost of calls that returned no answer.
        model: Name of the language model. Empty if none was used.
        model_tokens: Tokens that the model read and wrote in all its calls.
    """

    tokens: int = 0
    read_tokens: int = 0
    transcript_tokens: int = 0
    searches: int = 0
    details: int = 0
    reads: int = 0
    cost: NanoDollars = 0
    model: str = ""
    model_tokens: int = 0


class CitedAnswer(Struct, frozen=True):
    """Answer to a question. `findings` and `text` are both empty if nothing was found.

    Attributes:
        findings: Findings, the best one first.
        label: What the findings are. `BEST` means that the first finding answers the question, and `CLOSEST` that it
            is uncertain whether one of them does. `LATEST` are the newest entries of the time or project that the
            question names, and `OPEN` the open items and next steps of its sessions.
        text: Answer of a language model in Markdown. Empty if the answer consists of findings.
        sources: All citations of the findings or the text.
        sessions: Conversations that the findings or the text cite.
        nearest: Entries below the relevance threshold, if nothing was found.
        suggestions: Advice if nothing was found, and the command that lists more answers of the same kind.
        notices: Limits of the answer, such as claims without a source.
    """

    question: str
    findings: tuple[Finding, ...] = ()
    label: AnswerLabel = AnswerLabel.BEST
    text: str = ""
    sources: tuple[CitedSource, ...] = ()
    sessions: tuple[CitedSession, ...] = ()
    nearest: tuple[Hit, ...] = ()
    suggestions: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    receipt: AnswerReceipt = AnswerReceipt()
