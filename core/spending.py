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
    """Estimated cost of sending sessions, or single exchanges, to a language model.

    Attributes:
        calls: Number of sessions or exchanges to send, each in one call.
        unit: What a call is about: `session` or `exchange`.
        skipped: Number of sessions or exchanges with too little text to send.
        private: Number of those of private projects, which are never sent.
        priced: Source of the prices.
        calls_day: Maximum number of calls in 24 hours, or None without a limit.
    """

    model: str
    calls: int
    unit: str
    skipped: int
    private: int
    tokens_in: int
    tokens_out: int
    cost: NanoDollars
    priced: str
    calls_day: int | None = None


class Extraction(Struct):
    """Result of one run of the extraction with a language model.

    Attributes:
        cards: Number of sessions with a new card.
        learned: Number of single exchanges with new observations.
        nothing: Number of sessions or exchanges in which the model found nothing worth keeping.
        observations: Number of new observations, without cards.
        refused: Number of facts without evidence.
        cut: Number of facts that were left out and of texts that were shortened, because they were above a size limit.
        failed: Number of calls without a valid reply. A later run repeats them.
        problem: Reason of the last failure.
        given_up: Number of sessions or exchanges that are not sent again, because several replies were not valid.
        waiting: Number of sessions or exchanges that the run did not reach.
        stopped: Error that ended the run early.
    """

    asked: int = 0
    cards: int = 0
    learned: int = 0
    nothing: int = 0
    observations: int = 0
    refused: int = 0
    cut: int = 0
    failed: int = 0
    problem: str = ""
    given_up: int = 0
    waiting: int = 0
    cost: NanoDollars = 0
    stopped: PalaverError | None = None


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

    `replies` counts the replies by outcome. `injections` are the totals of the text that hooks injected into sessions.
    """

    spent: list[Spent] = field(default_factory=list[Spent])
    left: dict[str, NanoDollars] = field(default_factory=dict[str, int])
    calls_left: int | None = None
    replies: dict[str, int] = field(default_factory=dict[str, int])
    reading: ReadingCosts = ReadingCosts()
    injections: list[InjectionTotal] = field(default_factory=list[InjectionTotal])
