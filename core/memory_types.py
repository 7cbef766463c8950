"""Types of memories: an open vocabulary, with a registry of the types that each toolset offers.

Toolsets use different names for the same kind of memory, such as `pattern`, `code_pattern` and `recurring-pattern`. The
family is common to all toolsets. An unregistered type belongs to the family `fact`; a toolset may reject it.
"""

from collections.abc import Collection
from enum import StrEnum

from msgspec import Struct

from .errors import InvalidMemoryType

GOLDEN_RULE = "golden_rule"
"""Type of a proven memory after the user approved it. Callers cannot store it directly."""


class Family(StrEnum):
    """Meaning of a type, independent of the toolset."""

    PREFERENCE = "preference"
    DECISION = "decision"
    PATTERN = "pattern"
    FACT = "fact"
    ISSUE = "issue"
    SESSION = "session"
    SUMMARY = "summary"

    @property
    def promotes(self) -> bool:
        """True if memories of the family can become golden rules."""
        return self in {Family.PREFERENCE, Family.DECISION, Family.PATTERN}


class MemoryType(Struct, frozen=True):
    """Type that a toolset offers."""

    name: str
    toolset: str
    family: Family
    description: str


def _types(toolset: str, *rows: tuple[str, Family, str]) -> tuple[MemoryType, ...]:
    return tuple(MemoryType(name, toolset, family, description) for name, family, description in rows)


THEO, HISTORIAN, RAG, FABRIC = "theo", "historian", "rag", "fabric"

MEMORY_TYPES: tuple[MemoryType, ...] = (
    *_types(
        THEO,
        ("preference", Family.PREFERENCE, "A preference of the user"),
        ("decision", Family.DECISION, "A decision on design or implementation, with its reasons"),
        ("pattern", Family.PATTERN, "A practice that has proved itself"),
        ("session", Family.SESSION, "The current state of this session"),
        ("fact", Family.FACT, "A fact"),
    ),
    *_types(
        HISTORIAN,
        ("architectural-decision", Family.DECISION, "A decision about the overall architecture, with its reasons"),
        ("design-decision", Family.DECISION, "A decision about the design of a part, with its reasons"),
        ("learning", Family.FACT, "An insight gained while working"),
        ("user-preference", Family.PREFERENCE, "A preference of the user in every project"),
        ("project-preference", Family.PREFERENCE, "A preference for this project"),
        ("issue", Family.ISSUE, "A known problem, with its cause or workaround"),
        ("context", Family.FACT, "General background; use it if no other type fits"),
        ("recurring-pattern", Family.PATTERN, "A solution that was used repeatedly"),
        ("conventions-pattern", Family.PATTERN, "A rule of naming, style or layout"),
    ),
    *_types(
        RAG,
        ("preference", Family.PREFERENCE, "A preference of the user"),
        ("fact", Family.FACT, "A fact"),
        ("event", Family.SESSION, "An event"),
        ("workflow", Family.PATTERN, "The steps of a task"),
        ("context", Family.FACT, "Background"),
    ),
    *_types(
        FABRIC,
        ("code_pattern", Family.PATTERN, "Code to reuse"),
        ("bug_fix", Family.ISSUE, "A defect and its repair"),
        ("decision", Family.DECISION, "A decision"),
        ("convention", Family.PATTERN, "A rule that the project follows"),
        ("scratchpad", Family.SESSION, "Working notes of a session"),
        ("relationship", Family.PREFERENCE, "The way the user and the assistant work together"),
        ("summary", Family.SUMMARY, "A summary of older memories"),
    ),
)
_FAMILIES = {known.name: known.family for known in MEMORY_TYPES}


def known_types(toolset: str) -> tuple[MemoryType, ...]:
    """Return the types of one toolset, in the toolset's order."""
    return tuple(known for known in MEMORY_TYPES if known.toolset == toolset)


def family_of(name: str) -> Family:
    """Return the family of a type; `fact` for an unregistered type."""
    return _FAMILIES.get(name, Family.FACT)


def known_type(name: str, stored: Collection[str] = ()) -> str:
    """Return a type that a toolset offers or a stored memory has; raises `InvalidMemoryType` for an unknown type."""
    plain = name.strip()
    if plain in stored:
        return plain
    if plain.lower() not in {*_FAMILIES, GOLDEN_RULE}:
        raise InvalidMemoryType(name, hint=f"Use one of: {', '.join(dict.fromkeys((*_FAMILIES, *stored)))}.")
    return plain.lower()


def storable(name: str) -> str:
    """Return a type in its stored form; raises `InvalidMemoryType` for an invalid name and for `golden_rule`."""
    plain = name.strip()
    if not plain or not plain.replace("_", "").replace("-", "").isalnum():
        raise InvalidMemoryType(name, hint=f"Use one of: {', '.join(_FAMILIES)}, or a word of your own.")
    if plain == GOLDEN_RULE:
        raise InvalidMemoryType(
            name, hint="A golden rule must be earned: store a preference, decision or pattern and report its outcomes."
        )
    return plain
