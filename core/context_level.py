"""Context levels and categories of memories.

Only the toolset `rag` sets both: the level in the field `level` of a memory, and the category as its type. Memories of
other toolsets get a default category and a default level.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from .memory_types import Family


class ContextLevel(StrEnum):
    """Level of a memory: it concerns the user, a project or one session. Memories of `SESSION_STATE` expire."""

    USER_PREFERENCE = "USER_PREFERENCE"
    PROJECT_CONTEXT = "PROJECT_CONTEXT"
    SESSION_STATE = "SESSION_STATE"


class Category(StrEnum):
    """Category of a memory: the kind of its content, such as a preference or a workflow."""

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
"""Default categories: map the family of a memory to its category. Used if the type of the memory is not a category."""
LEVEL_OF: Final[Mapping[Category, ContextLevel]] = {
    Category.PREFERENCE: ContextLevel.USER_PREFERENCE,
    Category.FACT: ContextLevel.PROJECT_CONTEXT,
    Category.EVENT: ContextLevel.SESSION_STATE,
    Category.WORKFLOW: ContextLevel.PROJECT_CONTEXT,
    Category.CONTEXT: ContextLevel.PROJECT_CONTEXT,
}
"""Default levels: map the category of a memory to its level. Used if the memory has no level of its own."""


def category_of(memory_type: str, family: Family) -> Category:
    """Return the category of a memory: its type if that is a category, otherwise the default category of its family."""
    return Category(memory_type) if memory_type in frozenset(Category) else CATEGORY_OF[family]


def level_of(level: str, category: Category) -> ContextLevel:
    """Return the stored level of a memory, or the default level of its category if it has none."""
    return ContextLevel(level) if level in frozenset(ContextLevel) else LEVEL_OF[category]


def families_of(category: Category) -> tuple[Family, ...]:
    """Return the families that have this category as their default (see `CATEGORY_OF`)."""
    return tuple(family for family, each in CATEGORY_OF.items() if each is category)
