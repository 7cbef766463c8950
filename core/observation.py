"""What was learned: typed observations, each bound to the lines that prove it."""

from enum import StrEnum
from functools import cached_property

from msgspec import Struct

from .conversation import Milliseconds
from .errors import UnknownType
from .tokens import count

SUMMARY = "Session: "
"""Beginning of the title of a session's summary."""
PORTION = 500
"""Tokens that layer 2 shows of one item at most, with all that frames it."""
_FRAME = 160
"""Tokens that headings, labels and where it was said add to what an observation says. On average of the 232 that the
rules make of 98 real sessions they are 180 for one that is shown alone, and 145 for one of twenty.
"""
_QUOTES = 3
"""Pieces of evidence that layer 2 quotes; the lines of all are within those it names."""
_MARKS = '*`"“”„«»'
_ENDS = ".…,:; "
"""What may end a sentence that ends otherwise, or does not end, where it is said again."""


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


class Evidence(Struct, frozen=True):
    """Lines of the archived transcript (1-based, inclusive) and a short quote that stands in them."""

    start_line: int
    end_line: int
    quote: str


class Observation(Struct, frozen=True, dict=True):
    """One thing worth remembering.

    `origin` says whose word it is ("human", "assistant", "tool"); it is set by code and never rises. `extractor`
    names the rules or prompt version, so that observations can be replayed when it changes. What is worked out of it is
    worked out once, for whoever renders it asks again and again.
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

    @cached_property
    def lead(self) -> str:
        """The subtitle, where the narrative does not say it as well."""
        return "" if self.subtitle and _says(_bare(self.narrative), self.subtitle) else self.subtitle

    def says(self, words: str) -> bool:
        """Whether its title, lead or narrative says these words as well."""
        return _says(_bare(f"{self.title}\n{self.lead}\n{self.narrative}"), words)

    @cached_property
    def unsaid(self) -> tuple[Evidence, ...]:
        """Of the first few quotes those that nothing else here says word for word."""
        if not self.quoted:
            return ()
        said = _bare("\n".join((self.title, self.lead, self.narrative, *self.facts)))
        return tuple(proof for proof in self.quoted if not _says(said, proof.quote))

    @property
    def said_on(self) -> tuple[int, ...]:
        """The lines of the others, ascending: what is said here is said there."""
        return tuple(sorted({proof.start_line for proof in self.quoted} - {proof.start_line for proof in self.unsaid}))

    @property
    def quoted(self) -> tuple[Evidence, ...]:
        """The first few pieces of evidence that have a quote."""
        return tuple(proof for proof in self.evidence if proof.quote)[:_QUOTES]

    @property
    def is_summary(self) -> bool:
        """True for the summary of a session."""
        return self.type is ObservationType.GENERAL and self.title.startswith(SUMMARY)

    @cached_property
    def price(self) -> int:
        """About how many tokens layer 2 costs for it: never more than `PORTION`, to which it is cut."""
        told = (
            self.title,
            self.lead,
            self.narrative,
            *self.facts,
            *self.concepts,
            *self.files_read,
            *self.files_modified,
            *(proof.quote for proof in self.unsaid),
        )
        return min(count("\n".join(told)) + _FRAME, PORTION)


def _says(bare: str, words: str) -> bool:
    """Whether words stand in a text, of which the bare words are given, whatever marks them and ends their lines."""
    wanted = _bare(words).rstrip(_ENDS)
    start = bare.find(wanted) if wanted else -1
    while start >= 0:
        end = start + len(wanted)
        if not (_is_word(bare[max(start - 1, 0) : start]) or _is_word(bare[end : end + 1])):
            return True
        start = bare.find(wanted, start + 1)
    return False


def _is_word(sign: str) -> bool:
    """Whether a sign is part of a word; none, at the ends of a text, is not."""
    return sign.isalnum() or sign == "_"


def _bare(text: str) -> str:
    told = text.casefold()
    for mark in _MARKS:  # a table to translate by takes four times as long where not all is ASCII
        told = told.replace(mark, "")
    return " ".join(told.split())
