"""Classification of a memory into a context level by keywords, and detection of injected text.

Keywords decide only if the caller gives no level. The patterns in `injection_patterns.json` detect text that looks like
an injection of SQL, instructions, commands or paths. By default such a text is stored and flagged, because notes of
developers contain code. In strict mode it is refused.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Final

import orjson

from ...core.errors import InvalidInput
from ...core.memory import LEVEL_OF, Category, ContextLevel


class SuspectedInjection(InvalidInput):
    """Error: strict mode refuses a text that looks like an injection. `pattern` is the matching part of the text."""

    def __init__(self, kind: str, pattern: str) -> None:
        self.pattern = pattern
        super().__init__(f"Potential security threat detected: {kind} pattern")


def risks(text: str) -> list[str]:
    """Return the kinds of injection that a text looks like, such as `SQL injection`."""
    return list(dict.fromkeys(kind for kind, _ in _matching(text)))


def refuse_injection(text: str) -> None:
    """Raise `SuspectedInjection` if a text looks like an injection."""
    for kind, pattern in _matching(text):
        raise SuspectedInjection(kind, import_module("re2").search(pattern, text)[0].strip())


def _matching(text: str) -> list[tuple[str, str]]:
    """Return the kind and the regular expression of each pattern that matches, in the order of the file."""
    patterns, combined = _compiled()
    return [patterns[number] for number in sorted(combined.Match(text) or ())]


@cache
def _compiled() -> tuple[list[tuple[str, str]], Any]:
    """Return all patterns, and an automaton that finds the matching patterns in one pass over a text."""
    re2 = import_module("re2")  # The library has no type information, and its patterns take linear time.
    listed = orjson.loads(files(__package__).joinpath("injection_patterns.json").read_bytes())
    patterns = [(kind, f"(?im){pattern}") for kind, several in listed.items() for pattern in several]
    combined = re2.Set.SearchSet()
    for _, pattern in patterns:
        combined.Add(pattern)
    combined.Compile()
    return patterns, combined


_KEYWORDS: Final[Mapping[ContextLevel, Sequence[str]]] = {
    ContextLevel.USER_PREFERENCE: (
        "prefer(?:s|red|ence|ences)?",
        "likes?",
        "dislikes?",
        "favou?rites?",
        "always",
        "never",
        "usually",
        "my style",
        "how i",
        "should always",
        "default to",
        "guidelines?",
        "conventions?",
    ),
    ContextLevel.PROJECT_CONTEXT: (
        "(?:this|our) (?:project|codebase|repo(?:sitory)?)",
        "architecture",
        "framework",
        "library",
        "dependenc(?:y|ies)",
        "file structure",
        "project (?:uses|has)",
        "we (?:use|have)",
        "configured (?:to|with)",
        "setup",
        "environment",
        "deployment",
        "ci/cd",
        "version",
    ),
    ContextLevel.SESSION_STATE: (
        "currently",
        "working on",
        "today",
        "right now",
        "at the moment",
        "in progress",
        "temporar(?:y|ily)",
        "next (?:step|task)s?",
        "just (?:did|finished)",
        "about to",
        "this (?:session|conversation)",
        "for now",
    ),
}
_STRONG: Final[Mapping[ContextLevel, str]] = {
    ContextLevel.USER_PREFERENCE: "i (?:always|never|prefer|like|dislike)|my (?:preference|style|favou?rite)",
    ContextLevel.PROJECT_CONTEXT: "(?:this|our) (?:project|codebase)|architecture|tech stack",
    ContextLevel.SESSION_STATE: "currently|right now|working on|in progress|next (?:step|task)",
}
_CATEGORY_BOOST: Final[Mapping[Category, tuple[ContextLevel, float]]] = {
    Category.PREFERENCE: (ContextLevel.USER_PREFERENCE, 0.5),
    Category.CONTEXT: (ContextLevel.PROJECT_CONTEXT, 0.3),
    Category.EVENT: (ContextLevel.SESSION_STATE, 0.3),
    Category.WORKFLOW: (ContextLevel.PROJECT_CONTEXT, 0.2),
}
_STRONG_BOOST, _CODE_BOOST, _REQUEST_BOOST = 0.2, 0.3, 0.2
_ALL_MATCH: Final = 0.3
"""Share of a level's keywords that a text must contain to get the full score of 1."""
_MIN: Final = 0.3
"""Minimum score of the best level. If no level reaches it, the category determines the level."""
_CODE: Final = r"```|^\s*(?:def|class|function|import|from|const|let|var|fn|func|public)\s+\w+[^.\n]*[({;:]"
_REQUEST: Final = r"\s*(?:let'?s|please|can you)\b"


def classify(content: str, category: Category) -> ContextLevel:
    """Return the context level of a memory with this content and category."""
    scores = {
        level: min(1.0, _matches(content, words) / (_ALL_MATCH * len(words))) for level, words in _KEYWORDS.items()
    }
    for level, words in _STRONG.items():
        scores[level] += _STRONG_BOOST * _matches(content, [words])
    boosted, boost = _CATEGORY_BOOST.get(category, (LEVEL_OF[category], 0.0))
    scores[boosted] += boost
    if re.search(_CODE, content, re.MULTILINE):
        scores[ContextLevel.PROJECT_CONTEXT] += _CODE_BOOST
    if re.match(_REQUEST, content, re.IGNORECASE):
        scores[ContextLevel.SESSION_STATE] += _REQUEST_BOOST
    best = max(scores, key=lambda level: scores[level])
    return best if scores[best] >= _MIN else LEVEL_OF[category]


def _matches(content: str, words: Sequence[str]) -> int:
    """Return how many of these keywords the text contains as whole words."""
    return sum(_pattern(word).search(content) is not None for word in words)


@cache
def _pattern(word: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{word})(?!\w)", re.IGNORECASE)
