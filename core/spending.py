"""What asking a language model costs: the values behind `palaver observe` and `palaver stats`.

Amounts of money are in billionths of a US dollar.
"""

from msgspec import Struct, field

from .amount import NanoDollars
from .errors import PalaverError


class Usage(Struct, frozen=True):
    """Tokens of one call or of many, as the provider counted them. `tokens_in` leaves out those of the cache."""

    tokens_in: int = 0
    cache_written: int = 0
    cache_read: int = 0
    tokens_out: int = 0


class Spent(Struct, frozen=True):
    """What one model was used for. `unanswered` of the `calls` may have been charged although no answer was kept."""

    model: str
    reason: str
    calls: int
    unanswered: int
    cost: NanoDollars
    usage: Usage


class Estimate(Struct, frozen=True):
    """What looking at `exchanges` would cost: about `cost` one by one, about half of it (`batch`) in batches.

    `skipped` exchanges say too little to be asked about, `private` ones belong to projects that are never sent.
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


class Extraction(Struct):
    """What one run of the language model stage did.

    `learned` exchanges got observations, in `nothing` nothing was worth keeping; `refused` counts facts without proof.
    `stopped` is why it ended before everything was asked, if it did.
    """

    asked: int = 0
    learned: int = 0
    nothing: int = 0
    observations: int = 0
    refused: int = 0
    failed: int = 0
    given_up: int = 0
    sent: int = 0
    pending: int = 0
    waiting: int = 0
    cost: NanoDollars = 0
    stopped: PalaverError | None = None


class DeadLetter(Struct, frozen=True):
    """A request that was given up: about which lines, why, and the last reply as it came."""

    id: str
    path: str
    start_line: int
    end_line: int
    attempts: int
    reason: str
    reply: str


class ReadingCosts(Struct, frozen=True):
    """What the last `exchanges` that taught something cost to read, in estimated tokens.

    `told` is what layer 2 prints of them, all `observations` together. `said` is what the person and the agent said in
    them; `kept` is all that is kept of them, with thinking, calls and shortened results.
    """

    exchanges: int = 0
    observations: int = 0
    observation_tokens: int = 0
    dialogue_tokens: int = 0
    transcript_tokens: int = 0


class Stats(Struct, frozen=True):
    """What was spent and what is left of it; what observations cost to read beside what they were made from.

    `left` is what each budget still allows.
    """

    spent: list[Spent] = field(default_factory=list[Spent])
    left: dict[str, NanoDollars] = field(default_factory=dict[str, int])
    requests: dict[str, int] = field(default_factory=dict[str, int])
    refused: int = 0
    reading: ReadingCosts = ReadingCosts()
