"""Costs of language models, as shown by `palaver observe` and `palaver stats`.

Amounts are in billionths of a US dollar.
"""

from msgspec import Struct, field

from .amount import NanoDollars
from .errors import PalaverError
from .injection import InjectionTotal


class Usage(Struct, frozen=True):
    """Tokens of one or more calls, as counted by the provider. `tokens_in` excludes cached tokens."""

    tokens_in: int = 0
    cache_written: int = 0
    cache_read: int = 0
    tokens_out: int = 0


class Spent(Struct, frozen=True):
    """Calls to one model for one purpose.

    `unanswered` counts calls without an answer. The provider may have charged for them.
    """

    model: str
    reason: str
    calls: int
    unanswered: int
    cost: NanoDollars
    usage: Usage


class Estimate(Struct, frozen=True):
    """Estimated cost of sending exchanges and sessions to a language model.

    Attributes:
        exchanges: Number of exchanges to send.
        skipped: Number of exchanges with too little text to send.
        private: Number of exchanges of private projects, which are never sent.
        cost: Cost if each exchange or session is sent in a single call.
        batch: Cost if they are sent in batches.
        priced: Source of the prices.
        calls_day: Maximum number of calls in 24 hours, or None without a limit.
        sessions: Number of sessions to send.
    """

    model: str
    exchanges: int
    skipped: int
    private: int
    tokens_in: int
    tokens_out: int
    cost: NanoDollars
    batch: NanoDollars
    priced: str
    calls_day: int | None = None
    sessions: int = 0

    @property
    def calls(self) -> int:
        """Number of calls: one for each exchange and each session to send."""
        return self.exchanges + self.sessions


class Extraction(Struct):
    """Result of one run of the extraction with a language model.

    `learned` counts exchanges with new observations, `nothing` counts exchanges without any, `summarised` counts
    sessions with a new summary, and `refused` counts facts without evidence. `stopped` is the error that ended the run
    early.
    """

    asked: int = 0
    learned: int = 0
    nothing: int = 0
    observations: int = 0
    summarised: int = 0
    refused: int = 0
    failed: int = 0
    given_up: int = 0
    sent: int = 0
    pending: int = 0
    waiting: int = 0
    cost: NanoDollars = 0
    stopped: PalaverError | None = None


class DeadLetter(Struct, frozen=True):
    """Request that failed permanently, with the lines of its exchange, the reason, and the last reply."""

    id: str
    path: str
    start_line: int
    end_line: int
    attempts: int
    reason: str
    reply: str


class ReadingCosts(Struct, frozen=True):
    """Estimated tokens of the newest exchanges with observations, if an agent reads them in one of three forms.

    The forms are: the full observations, the dialogue of prompts and answers, and the transcript with thinking, tool
    calls and shortened results.
    """

    exchanges: int = 0
    observations: int = 0
    observation_tokens: int = 0
    dialogue_tokens: int = 0
    transcript_tokens: int = 0


class Stats(Struct, frozen=True):
    """Costs so far, remaining budgets and calls, and estimated tokens for reading observations and transcripts.

    `injections` are the totals of the text that hooks injected into sessions.
    """

    spent: list[Spent] = field(default_factory=list[Spent])
    left: dict[str, NanoDollars] = field(default_factory=dict[str, int])
    calls_left: int | None = None
    requests: dict[str, int] = field(default_factory=dict[str, int])
    refused: int = 0
    reading: ReadingCosts = ReadingCosts()
    injections: list[InjectionTotal] = field(default_factory=list[InjectionTotal])
