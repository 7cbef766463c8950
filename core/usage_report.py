"""Reports of tokens and list prices, by period, project, agent, model, session or branch."""

from enum import StrEnum

from msgspec import Struct

from .conversation import Milliseconds
from .reports import NanoDollars
from .tokens import TokenCounts


class UsageGroup(StrEnum):
    """Property by which usage is grouped. A block is the five hours after the first reply, from the full hour on."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    BLOCK = "block"
    PROJECT = "project"
    AGENT = "agent"
    MODEL = "model"
    SESSION = "session"
    BRANCH = "branch"

    @property
    def is_period(self) -> bool:
        """True for groups in the order of time."""
        return self in {UsageGroup.DAY, UsageGroup.WEEK, UsageGroup.MONTH, UsageGroup.BLOCK}


class UsageFilter(Struct, frozen=True):
    """Conditions for replies. A reply must match at least one value of each filter.

    Attributes:
        after: Start of the time range, inclusive. `before` is its end, exclusive.
        projects: Project names or folders.
        tags: Tags of the sessions, in lower case.
    """

    after: Milliseconds | None = None
    before: Milliseconds | None = None
    projects: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class UsageRow(Struct):
    """Tokens of a group of replies, and what they cost by the list prices of their days.

    Attributes:
        name: Day, first day of a week, month, start of a block, project, agent, model, branch or session ID.
        title: Title of a session.
        project: Project of a session or a branch.
        start: Start of a block. Its end is `end`.
        replies: Number of replies. `partial_replies` of them have a larger output than is counted.
        sessions: Number of sessions. Sub-agents belong to the session that started them.
        cost: List price of the replies whose price is known.
        unpriced_tokens: Tokens of the replies without a known price.
    """

    name: str
    title: str = ""
    project: str = ""
    start: Milliseconds | None = None
    end: Milliseconds | None = None
    counts: TokenCounts = TokenCounts()
    replies: int = 0
    partial_replies: int = 0
    sessions: int = 0
    cost: NanoDollars = 0
    unpriced_tokens: int = 0

    @property
    def is_minimum(self) -> bool:
        """True if the list price is at least `cost`: a price is unknown, or the output of a reply is."""
        return bool(self.unpriced_tokens or self.partial_replies)


class UsageReport(Struct, frozen=True):
    """Usage in groups: periods from the latest to the first, other groups from the most expensive to the cheapest.

    Attributes:
        prices: Sources of the prices, such as a price list with its date.
        unpriced: Tokens of each model without a known price.
        uncounted: Number of sessions of each agent whose token counts are not read.
        unread: Number of transcripts whose counts are missing, because they could not be read.
    """

    by: UsageGroup
    rows: tuple[UsageRow, ...]
    total: UsageRow
    prices: tuple[str, ...] = ()
    unpriced: dict[str, int] = {}
    uncounted: dict[str, int] = {}
    unread: int = 0
