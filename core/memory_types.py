"""The kinds of memory: an open vocabulary, with a registry of what each surface knows.

Surfaces have different words for one thing (`pattern`, `code_pattern`, `recurring-pattern`); the family says which.
A type that nobody registered is allowed in the core and belongs to the family `fact`; a surface may refuse it.
"""

from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct

from .errors import InvalidMemoryType

GOLDEN_RULE = "golden_rule"
"""What a proven memory becomes. It is earned, never stored."""


class Family(StrEnum):
    """What a type means, whichever surface named it."""

    PREFERENCE = "preference"
    DECISION = "decision"
    PATTERN = "pattern"
    FACT = "fact"
    ISSUE = "issue"
    SESSION = "session"
    SUMMARY = "summary"

    @property
    def promotes(self) -> bool:
        """Whether success can make a golden rule of it."""
        return self in {Family.PREFERENCE, Family.DECISION, Family.PATTERN}


class MemoryType(Struct, frozen=True):
    """A type that a surface knows."""

    name: str
    surface: str
    family: Family
    description: str


def _types(surface: str, *rows: tuple[str, Family, str]) -> tuple[MemoryType, ...]:
    return tuple(MemoryType(name, surface, family, description) for name, family, description in rows)


THEO, HISTORIAN, RAG, FABRIC = "theo", "historian", "rag", "fabric"

MEMORY_TYPES: tuple[MemoryType, ...] = (
    *_types(
        THEO,
        ("preference", Family.PREFERENCE, "How the person likes things done"),
        ("decision", Family.DECISION, "What was chosen in design or implementation, and why"),
        ("pattern", Family.PATTERN, "A way of working that proved itself"),
        ("session", Family.SESSION, "What is going on in this session"),
        ("fact", Family.FACT, "Something that is so"),
    ),
    *_types(
        HISTORIAN,
        ("architectural-decision", Family.DECISION, "How the system is built at large, with the reasons"),
        ("design-decision", Family.DECISION, "How a part, an interface or a screen is designed, with the reasons"),
        ("learning", Family.FACT, "What was found out while working"),
        ("user-preference", Family.PREFERENCE, "How this person likes to work, in every project"),
        ("project-preference", Family.PREFERENCE, "How things are done in this project"),
        ("issue", Family.ISSUE, "A known problem, with its cause or workaround"),
        ("context", Family.FACT, "General background; the type to use when no other fits"),
        ("recurring-pattern", Family.PATTERN, "A solution that came up again and again"),
        ("conventions-pattern", Family.PATTERN, "A rule of naming, style or layout that is kept here"),
    ),
    *_types(
        RAG,
        ("preference", Family.PREFERENCE, "What the person prefers"),
        ("fact", Family.FACT, "Something that is so"),
        ("event", Family.SESSION, "Something that happened"),
        ("workflow", Family.PATTERN, "How a task is done"),
        ("context", Family.FACT, "Background"),
    ),
    *_types(
        FABRIC,
        ("code_pattern", Family.PATTERN, "Code to do the same way again"),
        ("bug_fix", Family.ISSUE, "What was broken and how it was repaired"),
        ("decision", Family.DECISION, "What was chosen"),
        ("convention", Family.PATTERN, "A rule that is kept"),
        ("scratchpad", Family.SESSION, "Working notes of a session"),
        ("relationship", Family.PREFERENCE, "How the person and the assistant work together"),
        ("summary", Family.SUMMARY, "Older memories told in short"),
    ),
)
_FAMILIES = {known.name: known.family for known in MEMORY_TYPES}


def known_types(surface: str) -> tuple[MemoryType, ...]:
    """The types of one surface, in the order it lists them."""
    return tuple(known for known in MEMORY_TYPES if known.surface == surface)


def family_of(name: str) -> Family:
    """What a type means; `fact` for one that nobody registered."""
    return _FAMILIES.get(name, Family.FACT)


def named(name: str, held: Collection[str] = ()) -> str:
    """A type that some surface knows, or that a memory which is `held` has; raises `InvalidMemoryType` for another."""
    plain = name.strip()
    if plain in held:
        return plain
    if plain.lower() not in {*_FAMILIES, GOLDEN_RULE}:
        raise InvalidMemoryType(name, hint=f"Use one of: {', '.join(dict.fromkeys((*_FAMILIES, *held)))}.")
    return plain.lower()


def storable(name: str) -> str:
    """A type as it is stored; raises `InvalidMemoryType` for none, or for the one that must be earned."""
    plain = name.strip()
    if not plain or not plain.replace("_", "").replace("-", "").isalnum():
        raise InvalidMemoryType(name, hint=f"Use one of: {', '.join(_FAMILIES)}, or a word of your own.")
    if plain == GOLDEN_RULE:
        raise InvalidMemoryType(
            name, hint="A golden rule must be earned: store a preference, decision or pattern and report its outcomes."
        )
    return plain
