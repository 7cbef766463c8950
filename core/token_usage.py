"""Token usage of a session's replies.

Agents record the usage of one reply on several lines and in several files: while the reply streams, in forks and
resumed sessions, and in the progress records of sub-agents. A reply is identified by the IDs of its message and of the
request, and the largest count of each type is the final one. `usage_by_reply` applies this rule to lines, and the
table `usage` to all sources.
"""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from .conversation import Milliseconds


class TokenCounts(Struct, frozen=True):
    """Tokens by type. Tokens that were read from or written to the cache are not part of `input`.

    Cache writes are kept for five minutes or for one hour, at different prices.
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0

    def __add__(self, other: "TokenCounts") -> "TokenCounts":
        """Return the sum of each type."""
        return TokenCounts(*(a + b for a, b in zip(self.by_type, other.by_type, strict=True)))

    def maximum(self, other: "TokenCounts") -> "TokenCounts":
        """Return the larger count of each type."""
        return TokenCounts(*map(max, self.by_type, other.by_type))

    @property
    def by_type(self) -> tuple[int, int, int, int, int]:
        """Counts in the order of the fields."""
        return self.input, self.output, self.cache_read, self.cache_write_5m, self.cache_write_1h

    @property
    def cache_write(self) -> int:
        """Tokens written to the cache, for either time."""
        return self.cache_write_5m + self.cache_write_1h

    @property
    def total(self) -> int:
        """Tokens of all types."""
        return sum(self.by_type)


class UsageRecord(NamedTuple):
    """Token usage of a reply, as one line of a transcript records it.

    `message` and `request` are the IDs of the reply and of the request to the model. Either can be empty. `branch` is
    empty if the record does not name it.
    """

    message: str
    request: str
    counts: TokenCounts
    line: int = 0
    model: str = ""
    at: Milliseconds | None = None
    branch: str = ""
    is_partial: bool = False
    """True if the record was written while the reply was streamed, so that the output is at least the count."""


def usage_by_reply(records: Iterable[UsageRecord]) -> list[UsageRecord]:
    """Return one record for each reply, with the largest count of each type and the place of its first record.

    The output is partial only if no record is final.
    """
    replies: dict[tuple[str, str], UsageRecord] = {}
    for record in records:
        key = record.message, record.request
        earlier = replies.get(key)
        if earlier is None:
            replies[key] = record
        else:
            replies[key] = earlier._replace(
                counts=earlier.counts.maximum(record.counts),
                model=earlier.model or record.model,
                is_partial=earlier.is_partial and record.is_partial,
            )
    return list(replies.values())


def total_usage(records: Iterable[UsageRecord]) -> TokenCounts:
    """Return the tokens of all replies. Several records of one reply count once."""
    return sum((record.counts for record in usage_by_reply(records)), TokenCounts())
