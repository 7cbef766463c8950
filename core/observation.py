"""What was learned: typed observations, each bound to the lines that prove it."""

from dataclasses import dataclass
from enum import StrEnum

from .conversation import Milliseconds
from .errors import UnknownType
from .tokens import count

_FRAME = 60
"""Tokens that headings, labels and the like add to what an observation says."""


class ObservationType(StrEnum):
    """The kinds of thing that can be learned from a conversation."""

    DECISION = "decision"
    BUG_FIX = "bug-fix"
    PATTERN = "pattern"
    FEATURE = "feature"
    REFACTOR = "refactor"
    LEARNING = "learning"
    DEBUG = "debug"
    TEST = "test"
    CONFIG = "config"
    GENERAL = "general"

    @classmethod
    def parse(cls, name: str) -> "ObservationType":
        """The type that a name or alias means; raises `UnknownType`."""
        plain = name.strip().lower().replace("_", "-").replace(" ", "-")
        try:
            return cls(_ALIASES.get(plain, plain))
        except ValueError:
            raise UnknownType(name, [*cls]) from None


_ALIASES = {
    "bugfix": "bug-fix",
    "fix": "bug-fix",
    "bug": "bug-fix",
    "decisions": "decision",
    "refactoring": "refactor",
    "debugging": "debug",
    "testing": "test",
    "tests": "test",
    "configuration": "config",
    "discovery": "learning",
    "change": "general",
}


@dataclass(frozen=True, slots=True)
class Evidence:
    """Lines of the archived transcript (1-based, inclusive) and a short quote that stands in them."""

    start_line: int
    end_line: int
    quote: str


@dataclass(frozen=True, slots=True)
class Observation:
    """One thing worth remembering.

    `origin` says whose word it is ("human", "assistant", "tool"); it is set by code and never rises. `extractor`
    names the rules or prompt version, so that observations can be replayed when it changes.
    """

    type: ObservationType
    title: str
    subtitle: str = ""
    narrative: str = ""
    facts: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    files_read: tuple[str, ...] = ()
    files_modified: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    at: Milliseconds | None = None
    origin: str = "assistant"
    extractor: str = ""

    @property
    def lines(self) -> tuple[int, int] | None:
        """From the first to the last line of evidence; None without any."""
        told = [line for proof in self.evidence for line in (proof.start_line, proof.end_line)]
        return (min(told), max(told)) if told else None

    @property
    def price(self) -> int:
        """About how many tokens layer 2 costs for it."""
        told = (
            self.title,
            self.subtitle,
            self.narrative,
            *self.facts,
            *self.concepts,
            *self.files_read,
            *self.files_modified,
        )
        return count("\n".join(told)) + _FRAME
