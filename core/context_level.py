"""Context levels and categories of memories, with a default for memories of toolsets that set neither.

The toolset `rag` stores both. A level is the field `level` of a memory, and a category is its type.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from .memory_types import Family


class ContextLevel(StrEnum):
    """Level of a memory. Memories of `SESSION_STATE` expire."""

    USER_PREFERENCE = "USER_PREFERENCE"
    PROJECT_CONTEXT = "PROJECT_CONTEXT"
    SESSION_STATE = "SESSION_STATE"


class Category(StrEnum):
    """Category of a memory."""

    PREFERENCE = "preference"
    FACT = "fact"
    EVENT = "event"
    WORKFLOW = "workflow"
    CONTEXT = "context"


CATEGORY_OF: Final[Mapping[Family, Category]] = {
    Family.PREFERENCE: Category.PREFERENCE,
    Family.DECISION: Category.FACT,
    Family.PATTERN: Category.WORKFLOW,
    Family.FACT: Category.FACT,
    Family.ISSUE: Category.FACT,
    Family.SESSION: Category.EVENT,
    Family.SUMMARY: Category.CONTEXT,
}
"""Category of a memory whose type is not a category, by the family of its type."""
LEVEL_OF: Final[Mapping[Category, ContextLevel]] = {
    Category.PREFERENCE: ContextLevel.USER_PREFERENCE,
    Category.FACT: ContextLevel.PROJECT_CONTEXT,
    Category.EVENT: ContextLevel.SESSION_STATE,
    Category.WORKFLOW: ContextLevel.PROJECT_CONTEXT,
    Category.CONTEXT: ContextLevel.PROJECT_CONTEXT,
}
"""Level of a memory without a level, by its category."""


def category_of(memory_type: str, family: Family) -> Category:
    """Return the category of a memory with this type and family."""
    return Category(memory_type) if memory_type in frozenset(Category) else CATEGORY_OF[family]


def level_of(level: str, category: Category) -> ContextLevel:
    """Return the level of a memory with this stored level, which can be empty, and this category."""
    return ContextLevel(level) if level in frozenset(ContextLevel) else LEVEL_OF[category]


def families_of(category: Category) -> tuple[Family, ...]:
    """Return the families whose memories have this category if their type is not a category itself."""
    return tuple(family for family, each in CATEGORY_OF.items() if each is category)
