"""Observations: typed knowledge extracted from conversations, with transcript lines as evidence."""

import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from functools import cached_property
from typing import Final, Self

from msgspec import Struct

from .conversation import Milliseconds
from .errors import UnknownType
from .tokens import count

SUMMARY = "Session: "
"""Prefix of the stored title of every session card. It is not shown."""
OUTCOME, OPEN, NEXT = "Outcome: ", "Open: ", "Next: "
"""Labels of facts of a session card: a result, an open item and a next step."""
DETAIL_TOKENS = 500
"""Maximum tokens of one item in layer 2 of a search (details), including headings."""
_FRAME = 105
"""Estimated tokens of the headings, labels and evidence that are added to the text of an observation.

Measured means for 200 observations of 98 real sessions: 117 tokens if an observation is shown alone, and 94 in a list
of twenty observations.
"""
_QUOTES = 3
"""Maximum number of quotes of one observation in layer 2 of a search (details)."""
_MARKS = '*`"“”„«»'
_ENDS = ".…,:; "
"""Characters that are ignored at the end of a text when two texts are compared."""


class CardPart(StrEnum):
    """Part of a session card in which an observation is stated."""

    DECISION = "decision"
    CHANGE = "change"
    FINDING = "finding"


class ObservationType(StrEnum):
    """Type of an observation. Each member is the row of a type, and everything that lists types is derived from it.

    Attributes:
        label: Name that pages show to people.
        card: Part of a session card that states observations of this type. Only those of `CHANGE` describe a change.
        section: Section of a handoff that lists observations of this type, or an empty string.
        aliases: Other names that users type.
    """

    _value_: str
    label: str
    card: CardPart
    section: str
    aliases: tuple[str, ...]

    def __new__(
        cls, name: str, label: str = "", card: CardPart = CardPart.CHANGE, section: str = "", *aliases: str
    ) -> Self:
        """Create a member with the value `name`."""
        member = str.__new__(cls, name)
        member._value_ = name
        member.label, member.card, member.section, member.aliases = label, card, section, aliases
        return member

    DECISION = "decision", "Decision", CardPart.DECISION, "decisions", "decisions"
    BUG_FIX = "bug-fix", "Fix", CardPart.CHANGE, "state", "bugfix", "fix", "bug"
    PATTERN = "pattern", "Pattern", CardPart.FINDING
    FEATURE = "feature", "Feature", CardPart.CHANGE, "state"
    REFACTOR = "refactor", "Refactoring", CardPart.CHANGE, "state", "refactoring"
    LEARNING = "learning", "Finding", CardPart.FINDING, "", "discovery"
    DEBUG = "debug", "Cause", CardPart.FINDING, "", "debugging"
    TEST = "test", "Tests", CardPart.CHANGE, "", "testing", "tests"
    CONFIG = "config", "Settings", CardPart.CHANGE, "state", "configuration"
    GENERAL = "general", "Note", CardPart.CHANGE, "", "change"

    @classmethod
    def parse(cls, name: str) -> "ObservationType":
        """Return the type with this name or alias.

        Raises:
            UnknownType: The name is unknown.
        """
        plain = name.strip().lower().replace("_", "-").replace(" ", "-")
        for member in cls:
            if plain in {member.value, *member.aliases}:
                return member
        raise UnknownType(name, [*cls])


class Evidence(Struct, frozen=True):
    """Lines of an archived transcript (1-based, inclusive), with a short quote."""

    start_line: int
    end_line: int
    quote: str


class Observation(Struct, frozen=True, dict=True):
    """Knowledge extracted from a conversation.

    `origin` is the author of the text ("human", "assistant", "tool"). Palaver sets it and never replaces it with a more
    trusted origin. `extractor` is the version of the rules or of the prompt. Observations of an older version are
    replaced. Computed properties are cached, because rendering reads them repeatedly.
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
        """First and last line of the evidence, or None if the observation has no evidence."""
        lines = [line for proof in self.evidence for line in (proof.start_line, proof.end_line)]
        return (min(lines), max(lines)) if lines else None

    @cached_property
    def lead(self) -> str:
        """Subtitle, or an empty string if the narrative contains the subtitle."""
        return "" if self.subtitle and _contains(_normalized(self.narrative), self.subtitle) else self.subtitle

    def repeats(self, words: str) -> bool:
        """Return whether the title, the lead or the narrative contains these words."""
        return _contains(_normalized(f"{self.title}\n{self.lead}\n{self.narrative}"), words)

    @property
    def quotes(self) -> tuple[Evidence, ...]:
        """Evidence that contains a quote, at most `_QUOTES` pieces."""
        return tuple(proof for proof in self.evidence if proof.quote)[:_QUOTES]

    @cached_property
    def new_quotes(self) -> tuple[Evidence, ...]:
        """Pieces of `quotes` that do not repeat other text of the observation word for word."""
        if not self.quotes:
            return ()
        text = _normalized("\n".join((self.title, self.lead, self.narrative, *self.facts)))
        return tuple(proof for proof in self.quotes if not _contains(text, proof.quote))

    @cached_property
    def concepts_besides_files(self) -> tuple[str, ...]:
        """Concepts that are not the name of a file of the observation."""
        paths = (*self.files_read, *self.files_modified)
        files = {*paths, *(path.rpartition("/")[2] for path in paths)}
        return tuple(concept for concept in self.concepts if concept not in files)

    @property
    def source_lines(self) -> tuple[int, ...]:
        """Start lines of the pieces of `quotes` that repeat other text of the observation, in ascending order."""
        return tuple(
            sorted({proof.start_line for proof in self.quotes} - {proof.start_line for proof in self.new_quotes})
        )

    @property
    def is_summary(self) -> bool:
        """True for the summary of a session."""
        return self.type is ObservationType.GENERAL and self.title.startswith(SUMMARY)

    @property
    def name(self) -> str:
        """Title as it is shown. That of a session card has no prefix."""
        return self.title.removeprefix(SUMMARY) if self.is_summary else self.title

    @cached_property
    def tokens(self) -> int:
        """Estimated tokens of the observation in layer 2 of a search (details), at most `DETAIL_TOKENS`."""
        texts = (
            self.title,
            self.lead,
            self.narrative,
            *self.facts,
            *self.concepts_besides_files,
            *self.files_read,
            *self.files_modified,
            *(proof.quote for proof in self.new_quotes),
        )
        return min(count("\n".join(texts)) + _FRAME, DETAIL_TOKENS)


_WORD_CHARACTER: Final = re.compile(r"\w")


def _contains(text: str, words: str) -> bool:
    """Return whether a normalized text contains the given words, ignoring markup and trailing punctuation."""
    # Compiling a pattern for each text would take longer than the search.
    wanted, start = _normalized(words).rstrip(_ENDS), -1
    while wanted and (start := text.find(wanted, start + 1)) >= 0:
        if not _WORD_CHARACTER.match(text, start + len(wanted)) and not (
            start and _WORD_CHARACTER.match(text, start - 1)
        ):
            return True
    return False


def _normalized(text: str) -> str:
    folded = text.casefold()
    for mark in _MARKS:  # `str.translate` takes four times as long for text that is not ASCII.
        folded = folded.replace(mark, "")
    return " ".join(folded.split())


_WORD: Final = re.compile(r"[^\W\d_]{4,}")
_NAME: Final = re.compile(r"\w[/._]\w|\d{2}|`|--\w|[a-z][A-Z]")
"""Pattern for a part of a path, a number, an option, or a name in code."""
_WORDS_MIN: Final = 2
"""Minimum number of telling words, or names, of an item that states its subject."""
_EMPTY: Final = frozenset(
    "about after again ahead also approach before commit continue could each first from going have into just like more"
    " need next once option prefer proceed push ready should some still that their them then there these they thing"
    " things this those want what when whenever where whether which will with work would your yours".split()
)
"""Words that name no subject, as in "push whenever ready" and "which approach would you prefer"."""
_QUESTION: Final = "Question to the user: "
_INTERRUPTED: Final = "The user interrupted the work on "
_UNANSWERED: Final = "No final reply to "
_COMMAND: Final = re.compile(r"The last command, .+, failed\Z|The user refused the last command, ")
ENDINGS: Final[Mapping[str, str]] = {
    "last check failed": f"{OPEN}The last check, ",
    "last command failed": f"{OPEN}The last command, ",
    "last command refused": f"{OPEN}The user refused the last command, ",
    "interrupted": f"{OPEN}{_INTERRUPTED}",
    "no final reply": f"{OPEN}{_UNANSWERED}",
    "question to you": f"{OPEN}{_QUESTION}",
}
"""Beginning of the fact of a card that states how a session ended, by its name in lists, the worst first."""


def ending_of(facts: Collection[str]) -> str:
    """Return the name of the worst ending that the facts of a card state, or an empty text for a good one."""
    return next((name for name, start in ENDINGS.items() if any(fact.startswith(start) for fact in facts)), "")


def is_open_item(fact: str) -> bool:
    """Return whether a fact of a card is an open item or a next step that names its subject.

    The last command of a session, such as a failed look-up or a refused command, is no work. A question to the user
    needs its question mark.
    """
    if not fact.startswith((OPEN, NEXT)):
        return False
    text = _text(fact)
    if _COMMAND.match(text) or (text.startswith(_QUESTION) and "?" not in text):
        return False
    stated = text.removeprefix(_QUESTION).removeprefix(_INTERRUPTED).removeprefix(_UNANSWERED)
    words = {word.lower() for word in _WORD.findall(stated)} - _EMPTY
    return len(words) + len(_NAME.findall(stated)) >= _WORDS_MIN


def _text(fact: str) -> str:
    return fact.removeprefix(OPEN).removeprefix(NEXT)
