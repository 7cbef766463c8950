"""Compilation of readable lists of phrases into patterns.

A list is a regular expression with alternatives. Line ends and spaces around `|` are ignored.
"""

import re
from collections.abc import Callable
from functools import cached_property
from typing import Final

QUESTION_WORDS: Final = "what|why|which|who|where|when|how"


class PhrasePattern:
    """Pattern for a list of phrases, compiled on first use, because a hook or server uses only a few of all lists."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern, re.IGNORECASE)

    @cached_property
    def search(self) -> Callable[[str], re.Match[str] | None]:
        """The method `search` of the compiled pattern."""
        return self._compiled.search

    @cached_property
    def match(self) -> Callable[[str], re.Match[str] | None]:
        """The method `match` of the compiled pattern."""
        return self._compiled.match


def anywhere(listed: str) -> PhrasePattern:
    """Return a pattern that matches a phrase as whole words anywhere."""
    return PhrasePattern(rf"(?<!\w)(?:{_joined(listed)})(?!\w)")


def at_start(listed: str) -> PhrasePattern:
    """Return a pattern that matches a phrase as whole words at the start."""
    return PhrasePattern(rf"\A(?:{_joined(listed)})(?!\w)")


def whole_text(listed: str) -> PhrasePattern:
    """Return a pattern that matches a text consisting of a phrase and optional closing punctuation."""
    return PhrasePattern(rf"\A(?:{_joined(listed)})[.!:]*\Z")


def _joined(listed: str) -> str:
    return re.sub(r" ?\| ?", "|", " ".join(listed.split()))
