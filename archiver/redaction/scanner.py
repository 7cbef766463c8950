"""Where in a text are secrets? The rules, run by RE2, which no input can make slow."""

import math
from collections import Counter
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from typing import Protocol

from .rule import Allowed, Rule
from .rules import rules

NEAR = 200
"""At most so many bytes before and after a match count as its line."""
MEMORY = 1 << 20
"""Bytes that one pattern may use; RE2's own default would allow 1.8 GB for all of them."""
SIGNS_MEMORY = 32 << 20
"""Bytes that the signs of all rules may use. With 8 MiB RE2 drops its states again and again, at twice the time."""

_TAG = r"(?:<|u003c)[\\/]{0,3}private"
"""What begins and ends private spans, also where escapes hide it."""

Span = tuple[int, int]
Found = tuple[int, int, str]
"""Start and end in bytes, and the kind of secret."""


class Match(Protocol):
    """A match of RE2 in bytes."""

    def span(self, group: int = 0) -> Span:
        """Where the group stands; (-1, -1) if it took no part."""
        ...


class Pattern(Protocol):
    """A compiled pattern of RE2."""

    groups: int

    def search(self, text: bytes) -> Match | None:
        """The first match."""
        ...

    def finditer(self, text: bytes, pos: int | None = None, endpos: int | None = None) -> Iterator[Match]:
        """Return all matches between `pos` and `endpos`, none overlapping another."""
        ...


def compiled(pattern: str, memory: int = MEMORY) -> Pattern:
    """The pattern, ready to run; google-re2 has no types and is loaded when first needed."""
    re2 = import_module("re2")
    options = re2.Options()
    options.max_mem = memory
    options.log_errors = False
    made: Pattern = re2.compile(pattern, options)
    return made


class Signs:
    """Which rules can match a text at all, and whether private spans may be in it."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        re2 = import_module("re2")
        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        options.max_mem = SIGNS_MEMORY
        self._set = re2.Set.SearchSet(options)
        self._rules = list[frozenset[int]]()
        showing = dict[str, set[int]]()
        for number, rule in enumerate(rules):
            for sign in rule.signs:
                showing.setdefault(sign, set()).add(number)
        for sign, numbers in showing.items():
            self._set.Add(sign)
            self._rules.append(frozenset(numbers))
        # Matches everything: where even that is not found, RE2 gave up, and every rule has to look for itself.
        self._set.Add("")
        self._rules.append(frozenset())
        self._all = range(len(rules))
        self._set.Compile()
        # Twice as fast as the set, and never gives up. In order what begins alike stands together, and RE2 makes one
        # beginning of it: it is ready in half the time.
        self._any = compiled("(?i)" + "|".join(f"(?:{sign})" for sign in sorted((*showing, _TAG))), SIGNS_MEMORY)

    def shown(self, text: bytes) -> bool:
        """Whether there is any sign or tag in the text."""
        return self._any.search(text) is not None

    def rules(self, text: bytes) -> list[int]:
        """The numbers of the rules that have a sign in the text, in order."""
        if not self.shown(text):
            return []
        found: list[int] | None = self._set.Match(text)
        if found is None:
            return list(self._all)
        return sorted(set[int]().union(*(self._rules[sign] for sign in found)))


class Detector:
    """One rule at work; its patterns are compiled when they are first needed."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule

    def find(self, text: bytes) -> Iterator[Span]:
        """Yield the span of each secret of this kind."""
        for first, last in self._places(text):
            for match in self._pattern.finditer(text, first, last):
                start, end = span = self._secret(match)
                if start < end and self._counts(text, span, match.span()):
                    yield span

    def _places(self, text: bytes) -> Iterator[Span]:
        if not self.rule.within:
            return iter([(0, len(text))])
        return (match.span() for match in self._within.finditer(text))

    def _secret(self, match: Match) -> Span:
        if self.rule.group:
            return match.span(self.rule.group)
        groups = (match.span(group) for group in range(1, self._pattern.groups + 1))
        return next((span for span in groups if span[0] < span[1]), match.span())

    def _counts(self, text: bytes, secret: Span, match: Span) -> bool:
        if self.rule.entropy and entropy(text[slice(*secret)]) <= self.rule.entropy:
            return False
        for target, pattern in self._allowed:
            span = secret if target == "secret" else match if target == "match" else line(text, match)
            if pattern.search(text[slice(*span)]):
                return False
        return True

    @cached_property
    def _pattern(self) -> Pattern:
        return compiled(self.rule.pattern)

    @cached_property
    def _within(self) -> Pattern:
        return compiled(self.rule.within)

    @cached_property
    def _allowed(self) -> list[tuple[str, Pattern]]:
        return [(allowed.target, speaking_for(allowed)) for allowed in self.rule.allowed]


@cache
def speaking_for(allowed: Allowed) -> Pattern:
    """One pattern for all that an exception names."""
    words = [f"(?i:{import_module('re2').escape(word)})" for word in allowed.words]
    return compiled("|".join([*(f"(?:{pattern})" for pattern in allowed.patterns), *words]))


@cache
def signs() -> Signs:
    """The signs of all rules."""
    return Signs(rules())


@cache
def detectors() -> tuple[Detector, ...]:
    """One for each rule, in the rules' order."""
    return tuple(map(Detector, rules()))


def scan(text: bytes) -> list[Found]:
    """Every secret in UTF-8 `text`, by start. Overlapping finds are one, of the kind that the first rule gives."""
    numbers = signs().rules(text)
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
    """Shannon's, in bits per character."""
    characters = secret.decode(errors="replace")
    return math.log2(len(characters)) - sum(count * math.log2(count) for count in Counter(characters).values()) / len(
        characters
    )


def line(text: bytes, match: Span) -> Span:
    """The lines that a match touches, as far as they are near it: a line may be a megabyte long."""
    start, end = match
    first = text.rfind(b"\n", max(0, start - NEAR), start) + 1
    last = text.find(b"\n", end, end + NEAR)
    return first or max(0, start - NEAR), last if last >= 0 else end + NEAR
