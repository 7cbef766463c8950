"""Tests of categories and context levels of memories."""

from pathlib import Path

import pytest

from palaver.core.memory import FAMILIES, Category, ContextLevel, MemoryFilter

from .memory_harness import Harness


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    """Return one memory of each type without a level, one of each level, and a golden rule."""
    harness = Harness(tmp_path)
    for kind in (*FAMILIES, "own-type"):
        harness.add(f"A memory of the type {kind}", kind)
    for level in (*ContextLevel, "other"):
        harness.add(f"A memory of the level {level}", "workflow", level=level)
    harness.golden("A proven pattern", "pattern")
    return harness


def test_every_memory_has_one_category_and_one_level(harness: Harness) -> None:
    """Filters in SQL and in memory agree, and each memory has exactly one category and one level."""
    every, total = harness.core.page(limit=1_000), 0
    for category in Category:
        for level in ContextLevel:
            wanted = MemoryFilter(categories=(category,), levels=(level,))
            found = {stored.id for stored in harness.core.page(wanted, limit=1_000)}
            assert found == {stored.id for stored in every if wanted.admits(stored)}
            assert found == {stored.id for stored in every if (stored.category, stored.level) == (category, level)}
            total += harness.core.count(wanted)

    assert total == len(every) == len(FAMILIES) + 6
    assert sum(number for _, _, number in harness.core.count_kinds()) == total


@pytest.mark.parametrize(
    ("kind", "category", "level"),
    [
        ("preference", "preference", "USER_PREFERENCE"),
        ("decision", "fact", "PROJECT_CONTEXT"),
        ("pattern", "workflow", "PROJECT_CONTEXT"),
        ("context", "context", "PROJECT_CONTEXT"),
        ("session", "event", "SESSION_STATE"),
        ("own-type", "fact", "PROJECT_CONTEXT"),
    ],
)
def test_memories_of_other_toolsets_have_a_category(harness: Harness, kind: str, category: str, level: str) -> None:
    """A memory without a category or level gets those of its family."""
    [stored] = harness.core.page(MemoryFilter(types=(kind,)))

    assert (stored.category, stored.level) == (Category(category), ContextLevel(level))


def test_a_repeated_memory_keeps_the_level_that_lasts(tmp_path: Path) -> None:
    """If a session state is stored again as project context, it becomes project context and does not expire."""
    harness = Harness(tmp_path)
    harness.add("The cache is off", "fact", level="SESSION_STATE")
    stored = harness.add("The cache is off", "fact", level="PROJECT_CONTEXT")
    assert (stored.memory.level, stored.memory.valid_until) == ("PROJECT_CONTEXT", None)
    again = harness.add("The cache is off", "fact", level="SESSION_STATE")

    assert (again.memory.level, again.memory.valid_until) == ("PROJECT_CONTEXT", None)
