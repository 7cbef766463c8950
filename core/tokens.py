"""Estimates of the tokens of a text without a tokenizer, a bounded cache, and the recorded token usage of replies.

Agents record the usage of one reply on several lines and in several files: while the reply streams, in forks and
resumed sessions, and in the progress records of sub-agents. A reply is identified by the IDs of its message and of the
request, and the largest count of each type is the final one. `usage_by_reply` applies this rule to lines, and the
table `usage` to all sources.
"""

import re
from collections.abc import Callable, Iterable
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from msgspec import Struct

from .conversation import Milliseconds

# Patterns and hundredths of a token per match. They are fitted to the larger of two real counts (o200k and Anthropic's
# published tokenizer) over transcripts, code, identifiers, dates and a dozen languages.
_WORDS = (
    (re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])"), 122),  # words, and the words inside camelCase
    (re.compile(r"(?<!\S)[A-Za-z][a-z]*(?![^\s.,:;)!?])"), -13),  # a whole word with its space is cheaper
    (re.compile(r"[a-z]{10,14}"), 90),  # long words are split
    (re.compile(r"[A-Z]{2,3}(?![a-z])"), 25),
    (re.compile(r"\d{1,3}"), 104),
    (re.compile(r"\d{4,6}"), 55),
    (re.compile(r"[!-/:-@\[-`{-~]+"), 105),
)
_NEWLINE, _GAP = 15, 70
_GAPS = re.compile(r" {3,}")  # and tabs
_OTHER = (
    ("\u2e80-\u303f \u3400-\u9fff \uf900-\ufaff \uff00-\uffef", 85),  # Han
    ("\u3040-\u30ff", 100),  # kana
    ("\uac00-\ud7af \u1100-\u11ff", 125),  # Hangul
    ("\u0080-\u024f", 90),  # Latin with diacritics
    ("\u0370-\u05ff", 60),  # Greek, Cyrillic, Hebrew
    ("\u0600-\u1fff", 110),  # Arabic to Georgian, Indic scripts
    ("\u2000-\u2e7f", 90),  # typographic characters, arrows, box drawing
    ("\U00010000-\U0010ffff", 360),  # emoji
)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_CACHE_SIZE: Final = 1 << 14


def count(text: str) -> int:
    """Estimate the tokens of a text for current models, with a bias towards overestimation.

    Accuracy was measured on 1,231 transcript texts of at least 50 tokens outside the training set. The reference was
    the larger count of two tokenizers (o200k and Anthropic's). Estimates were 3.7 % too high on average, and within
    14.6 % for 95 % of the texts. For shorter texts, they were within 23 %. Compared with o200k alone, they were 16 %
    too high. An estimate takes about 0.05 ms for 2,000 characters if the results of its words are cached.
    """
    hundredths = sum(map(_cost_of_word, text.split())) + _NEWLINE * text.count("\n") + _GAP * text.count("\t")
    if "   " in text:
        hundredths += _GAP * len(_GAPS.findall(text))
    if not text.isascii():
        hundredths += sum(map(_cost_of_character, "".join(_NOT_ASCII.findall(text))))
    return round(hundredths / 100)


@lru_cache(_CACHE_SIZE)
def _cost_of_character(character: str) -> int:
    """Return the cost of a non-ASCII character, in hundredths of a token.

    The function compares characters, because compiling regular expressions would take longer than most estimates.
    """
    return sum(cost for ranges, cost in _OTHER if any(r[0] <= character <= r[2] for r in ranges.split(" ")))


@lru_cache(_CACHE_SIZE)
def _cost_of_word(word: str) -> int:
    """Return the cost of the ASCII characters of a word, in hundredths of a token.

    Most words recur, so results are cached.
    """
    return sum(cost * len(pattern.findall(word)) for pattern, cost in _WORDS)


Key = TypeVar("Key")
Value = TypeVar("Value")


class Memo(dict[Key, Value]):
    """Cache of computed values by key, with at most `most` entries. A full cache is emptied.

    Unlike `lru_cache`, this cache does not keep a reference to a bound method, so its owner is freed without garbage
    collection.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def get_or_make(self, key: Key, make: Callable[[Key], Value]) -> Value:
        """Return the cached value for a key, or compute and cache it."""
        if key not in self:
            self.put(key, make(key))
        return self[key]

    def put(self, key: Key, value: Value) -> None:
        """Cache a value."""
        if len(self) >= self._most:
            self.clear()
        self[key] = value


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


class Completeness(IntEnum):
    """Part of a reply that a record of its usage counts. Of several records, the most complete one decides."""

    WHOLE = 0
    PARTIAL = 1
    """The output is larger than the count, because the text of the reply is."""
    PROGRESS = 2
    """Beginning of a sub-agent's reply, in the transcript of the session that started the sub-agent."""


class UsageRecord(NamedTuple):
    """Token usage of a reply, as one line of a transcript records it.

    `message` and `request` are the IDs of the reply and of the request to the model. Either can be empty. `branch` is
    empty if the record does not name it. `written` is a lower bound of the tokens of the text on the line.
    """

    message: str
    request: str
    counts: TokenCounts
    line: int = 0
    model: str = ""
    at: Milliseconds | None = None
    branch: str = ""
    completeness: Completeness = Completeness.WHOLE
    written: int = 0


def usage_by_reply(records: Iterable[UsageRecord]) -> list[UsageRecord]:
    """Return one record for each reply, with the largest count of each type and the place of its first record.

    A reply that wrote more than all its records count is partial: some versions of Claude Code record only the count
    at the start of the stream.
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
                completeness=min(earlier.completeness, record.completeness),
                written=max(earlier.written, record.written),
            )
    return [
        reply._replace(completeness=max(reply.completeness, Completeness.PARTIAL))
        if reply.written > reply.counts.output
        else reply
        for reply in replies.values()
    ]


def total_usage(records: Iterable[UsageRecord]) -> TokenCounts:
    """Return the tokens of all replies. Several records of one reply count once."""
    return sum((record.counts for record in usage_by_reply(records)), TokenCounts())
