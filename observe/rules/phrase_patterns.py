"""Compilation of readable lists of phrases into patterns.

A list is a regular expression with alternatives. Line ends and spaces around `|` are ignored.
"""

import re
from typing import Final

QUESTION_WORDS: Final = "what|why|which|who|where|when|how"


def anywhere(listed: str) -> re.Pattern[str]:
    """Compile a pattern that matches a phrase as whole words anywhere."""
    return re.compile(rf"(?<!\w)(?:{_joined(listed)})(?!\w)", re.IGNORECASE)


def at_start(listed: str) -> re.Pattern[str]:
    """Compile a pattern that matches a phrase as whole words at the start."""
    return re.compile(rf"\A(?:{_joined(listed)})(?!\w)", re.IGNORECASE)


def whole_text(listed: str) -> re.Pattern[str]:
    """Compile a pattern that matches a text consisting of a phrase and optional closing punctuation."""
    return re.compile(rf"\A(?:{_joined(listed)})[.!:]*\Z", re.IGNORECASE)


def _joined(listed: str) -> str:
    return re.sub(r" ?\| ?", "|", " ".join(listed.split()))
