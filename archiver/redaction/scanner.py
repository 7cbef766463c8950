"""Search for secrets in a text with RE2, which runs in linear time on any input.

A quick check of short texts for possible secrets avoids loading all rules, which takes 30 ms.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from itertools import chain
from typing import Protocol

from ...core.text import UNUSUAL, visible
from .rules import AllowList, Rule, rules

_LONG = 16
"""Minimum length of a word that can be a secret without a name before it."""
_SHORT = 6
_NAMED = re.compile(r"(?i)passw|passphrase|pwd|secret|token|key|=|://")
_PLAIN = re.compile(r"[0-9a-f-]+|[^\W\d_]+")
"""Pattern for IDs, commit hashes and words. No rule matches these values unless a name precedes them."""
_JOINTS = re.compile(r"[/\\.]")


def may_contain_secret(text: str) -> bool:
    """Return whether a short text may contain a secret."""
    text = visible(text)
    words = [word for word in text.split() if len(word) >= _SHORT and not word.isalpha()]
    return any(len(word) >= _LONG and not _PLAIN.fullmatch(word) for word in words) or bool(
        words and _NAMED.search(text)
    )


def name_may_contain_secret(name: str) -> bool:
    """Return whether the name of a project, file or session may contain a secret."""
    return may_contain_secret(_JOINTS.sub(" ", name))


NEAR = 200
"""Maximum number of bytes before and after a match that belong to the line of the match."""
MEMORY = 1 << 20
"""Maximum memory in bytes for one pattern. RE2's default would allow 1.8 GB for all patterns."""
KEYWORD_MEMORY = 64 << 20
"""Maximum memory in bytes for all keywords. With 32 MiB, RE2 drops cached states and takes four times as long."""
SEPARATORS = tuple(separator.encode() for separator in ("|", "│", "┃", ",", ";", "\t"))
"""Separators between the cells of a table."""
AROUND = b" \t\r\n\"'`*"
"""Characters around the value of a cell."""

_TAG = r"(?:<|u003c)[\\/]{0,3}private"
"""Pattern for tags of private spans, including escaped tags."""

Span = tuple[int, int]
Found = tuple[int, int, str]
"""Start and end offsets of a secret in bytes, and its kind."""


class Re2Match(Protocol):
    """RE2 match with byte offsets."""

    def span(self, group: int = 0) -> Span:
        """Return the span of a group, or (-1, -1) if the group did not match."""
        ...


class Re2Pattern(Protocol):
    """Compiled RE2 pattern."""

    groups: int

    def search(self, text: bytes) -> Re2Match | None:
        """Return the first match."""
        ...

    def finditer(self, text: bytes, pos: int | None = None, endpos: int | None = None) -> Iterator[Re2Match]:
        """Return all non-overlapping matches between `pos` and `endpos`."""
        ...


def compiled(pattern: str, memory: int = MEMORY) -> Re2Pattern:
    """Compile a pattern. The google-re2 library has no type information and is loaded on first use."""
    re2 = import_module("re2")
    options = re2.Options()
    options.max_mem = memory
    options.log_errors = False
    made: Re2Pattern = re2.compile(pattern, options)
    return made


class KeywordIndex:
    """Index of the keywords of all rules, which selects the rules that can match a text."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        re2 = import_module("re2")
        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        options.max_mem = KEYWORD_MEMORY
        self._set = re2.Set.SearchSet(options)
        self._rules = list[frozenset[int]]()
        by_keyword = dict[str, set[int]]()
        for number, rule in enumerate(rules):
            for keyword in rule.keywords:
                by_keyword.setdefault(keyword, set()).add(number)
        for keyword, numbers in by_keyword.items():
            self._set.Add(keyword)
            self._rules.append(frozenset(numbers))
        # This pattern matches every text. If it fails, RE2 ran out of memory, and every rule must be tried.
        self._set.Add("")
        self._rules.append(frozenset())
        self._all = range(len(rules))
        self._set.Compile()
        # A single pattern is twice as fast as the set, and never fails. Sorted keywords compile in half the time,
        # because they share prefixes.
        keywords = (f"(?:{keyword})" for keyword in sorted((*by_keyword, _TAG, UNUSUAL)))
        self._unusual = compiled(UNUSUAL)
        self._any = compiled("(?i)" + "|".join(keywords), KEYWORD_MEMORY)

    def has_unusual(self, text: bytes) -> bool:
        """Return whether the text has a character that `visible` can change."""
        return self._unusual.search(text) is not None

    def has_any(self, text: bytes) -> bool:
        """Return whether the text contains any keyword, a tag of a private span, or an unusual character."""
        return self._any.search(text) is not None

    def rules(self, text: bytes) -> list[int]:
        """Return the indices of the rules with a keyword in the text, in order."""
        if not self.has_any(text):
            return []
        found: list[int] | None = self._set.Match(text)
        if found is None:
            return list(self._all)
        return sorted(set[int]().union(*(self._rules[keyword] for keyword in found)))


class Detector:
    """Matcher of one rule, which compiles its patterns on first use."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def find(self, text: bytes) -> Iterator[Span]:
        """Yield the span of each secret of this kind."""
        for first, last in self._ranges(text):
            for match in self._pattern.finditer(text, first, last):
                start, end = span = self._secret(match)
                if start < end and self._is_secret(text, span, match.span()):
                    yield span

    def _ranges(self, text: bytes) -> Iterator[Span]:
        if not self.rule.within:
            return iter([(0, len(text))])
        spans = (match.span() for match in self._within.finditer(text))
        return chain.from_iterable(cells(text, span, self._column) for span in spans) if self.rule.column else spans

    def _secret(self, match: Re2Match) -> Span:
        if self.rule.group:
            return match.span(self.rule.group)
        groups = (match.span(group) for group in range(1, self._pattern.groups + 1))
        return next((span for span in groups if span[0] < span[1]), match.span())

    def _is_secret(self, text: bytes, secret: Span, match: Span) -> bool:
        if self.rule.entropy and entropy(text[slice(*secret)]) <= self.rule.entropy:
            return False
        for target, pattern in self._allowed:
            span = secret if target == "secret" else match if target == "match" else line(text, match)
            if pattern.search(text[slice(*span)]):
                return False
        return True

    @cached_property
    def _pattern(self) -> Re2Pattern:
        return compiled(self.rule.pattern)

    @cached_property
    def _within(self) -> Re2Pattern:
        return compiled(self.rule.within)

    @cached_property
    def _column(self) -> Re2Pattern:
        return compiled(self.rule.column)

    @cached_property
    def _allowed(self) -> list[tuple[str, Re2Pattern]]:
        return [(allowed.target, allow_pattern(allowed)) for allowed in self.rule.allowed]


def cells(text: bytes, table: Span, column: Re2Pattern) -> Iterator[Span]:
    """Yield the span of each cell below a header that matches `column`.

    Rows with another number of cells than the header are skipped.
    """
    start, end = table
    lines = text[start:end].splitlines(keepends=True)
    separator = max(SEPARATORS, key=lines[0].count)
    header = lines[0].split(separator)
    columns = [number for number, name in enumerate(header) if column.search(name.strip())]
    for row in lines:
        values = row.split(separator)
        if start > table[0] and len(values) == len(header):
            for number in columns:
                value = values[number].strip(AROUND)
                first = start + sum(map(len, values[:number])) + number * len(separator)
                first += values[number].index(value)
                yield first, first + len(value)
        start += len(row)


@cache
def allow_pattern(allowed: AllowList) -> Re2Pattern:
    """Return one pattern for all entries of an allow list."""
    words = [f"(?i:{import_module('re2').escape(word)})" for word in allowed.words]
    return compiled("|".join([*(f"(?:{pattern})" for pattern in allowed.patterns), *words]))


@cache
def keyword_index() -> KeywordIndex:
    """Return the index of the keywords of all rules."""
    return KeywordIndex(rules())


@cache
def detectors() -> tuple[Detector, ...]:
    """Return a detector for each rule, in order."""
    return tuple(map(Detector, rules()))


def scan(text: bytes) -> list[Found]:
    """Return every secret in UTF-8 `text`, ordered by start.

    Overlapping matches are merged. The rule that comes first in `rules()` determines the kind of a merged match.
    """
    numbers = keyword_index().rules(text)
    if not numbers:
        return []
    found = sorted((span, number) for number in numbers for span in detectors()[number].find(text))
    merged: list[tuple[int, int, int]] = []
    for (start, end), number in found:
        if merged and start < merged[-1][1]:
            before, until, first = merged[-1]
            merged[-1] = (before, max(until, end), min(first, number))
        else:
            merged.append((start, end, number))
    return [(start, end, rules()[number].kind) for start, end, number in merged]


def entropy(secret: bytes) -> float:
    """Return the Shannon entropy of a secret in bits per character."""
    characters = secret.decode(errors="replace")
    return math.log2(len(characters)) - sum(count * math.log2(count) for count in Counter(characters).values()) / len(
        characters
    )


def line(text: bytes, match: Span) -> Span:
    """Return the span of a match's lines, limited to `NEAR` bytes around the match.

    The limit is needed because a line can be longer than a megabyte.
    """
    start, end = match
    first = text.rfind(b"\n", max(0, start - NEAR), start) + 1
    last = text.find(b"\n", end, end + NEAR)
    return first or max(0, start - NEAR), last if last >= 0 else end + NEAR
