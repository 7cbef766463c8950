"""Types of memories. The vocabulary is open, and each known type belongs to a family.

Toolsets use different names for the same kind of memory, such as `pattern`, `code_pattern` and `recurring-pattern`. The
family is common to all toolsets. An unknown type belongs to the family `fact`, but a toolset may reject it.
"""

from collections.abc import Collection
from enum import StrEnum
from typing import Final

from .errors import InvalidMemoryType

GOLDEN_RULE = "golden_rule"
"""Type of a memory that proved useful and that the user approved. Callers cannot store this type directly."""


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


HISTORIAN_TYPES: Final = {
    "architectural-decision": "A decision about the overall architecture, with its reasons",
    "design-decision": "A decision about the design of a part, with its reasons",
    "learning": "An insight gained while working",
    "user-preference": "A preference of the user in every project",
    "project-preference": "A preference for this project",
    "issue": "A known problem, with its cause or workaround",
    "context": "General background; use it if no other type fits",
    "recurring-pattern": "A solution that was used repeatedly",
    "conventions-pattern": "A rule of naming, style or layout",
}
"""Types of the Historian toolset, with their descriptions."""

FAMILIES: Final = {
    "preference": Family.PREFERENCE,
    "decision": Family.DECISION,
    "pattern": Family.PATTERN,
    "session": Family.SESSION,
    "fact": Family.FACT,
    "architectural-decision": Family.DECISION,
    "design-decision": Family.DECISION,
    "learning": Family.FACT,
    "user-preference": Family.PREFERENCE,
    "project-preference": Family.PREFERENCE,
    "issue": Family.ISSUE,
    "context": Family.FACT,
    "recurring-pattern": Family.PATTERN,
    "conventions-pattern": Family.PATTERN,
    "event": Family.SESSION,
    "workflow": Family.PATTERN,
    "code_pattern": Family.PATTERN,
    "bug_fix": Family.ISSUE,
    "convention": Family.PATTERN,
    "scratchpad": Family.SESSION,
    "relationship": Family.PREFERENCE,
    "summary": Family.SUMMARY,
}
"""Family of each known type."""


def family_of(name: str) -> Family:
    """Return the family of a type, or `fact` for an unknown type."""
    return FAMILIES.get(name, Family.FACT)


def known_type(name: str, stored: Collection[str] = ()) -> str:
    """Return the name if it is a known type or the type of a stored memory. Raises `InvalidMemoryType` otherwise."""
    plain = name.strip()
    if plain in stored:
        return plain
    if plain.lower() not in {*FAMILIES, GOLDEN_RULE}:
        raise InvalidMemoryType(name, hint=f"Use one of: {', '.join(dict.fromkeys((*FAMILIES, *stored)))}.")
    return plain.lower()


def storable(name: str) -> str:
    """Return a type without surrounding spaces. Raises `InvalidMemoryType` for `golden_rule` or an invalid name."""
    plain = name.strip()
    if not plain or not plain.replace("_", "").replace("-", "").isalnum():
        raise InvalidMemoryType(name, hint=f"Use one of: {', '.join(FAMILIES)}, or a word of your own.")
    if plain == GOLDEN_RULE:
        raise InvalidMemoryType(
            name, hint="Golden rules cannot be stored. Store a preference, decision or pattern and report outcomes."
        )
    return plain
