"""Tests of the classification of memories into context levels."""

import pytest

from palaver.agents.rag.level_classifier import classify
from palaver.core.memory import Category, ContextLevel


@pytest.mark.parametrize(
    ("content", "category", "level"),
    [
        ("I prefer Python over JavaScript for backend development", "preference", "USER_PREFERENCE"),
        ("I always run the tests first", "workflow", "USER_PREFERENCE"),
        ("My style is short functions; I never use globals", "fact", "USER_PREFERENCE"),
        ("This project uses FastAPI with a layered architecture", "fact", "PROJECT_CONTEXT"),
        ("Our codebase has a plugin framework, configured with TOML", "event", "PROJECT_CONTEXT"),
        ("Currently working on the login page", "fact", "SESSION_STATE"),
        ("For now the cache is off; the next step is a test", "fact", "SESSION_STATE"),
        ("Let's look at the parser today", "fact", "SESSION_STATE"),
        ("```python\ndef run(): ...\n```", "event", "PROJECT_CONTEXT"),
    ],
)
def test_keywords_determine_the_level(content: str, category: str, level: str) -> None:
    """Keywords, the category, code and requests add to the score of a level. The highest score wins."""
    assert classify(content, Category(category)) is ContextLevel(level)


@pytest.mark.parametrize(
    ("category", "level"),
    [
        ("preference", "USER_PREFERENCE"),
        ("fact", "PROJECT_CONTEXT"),
        ("workflow", "PROJECT_CONTEXT"),
        ("context", "PROJECT_CONTEXT"),
        ("event", "SESSION_STATE"),
    ],
)
def test_the_category_is_the_default(category: str, level: str) -> None:
    """Without keywords, the category determines the level."""
    assert classify("Tide tables", Category(category)) is ContextLevel(level)


def test_keywords_are_whole_words() -> None:
    """A keyword inside of another word does not count."""
    assert classify("Likelihood of a subversion today-ish", Category.FACT) is ContextLevel.PROJECT_CONTEXT
