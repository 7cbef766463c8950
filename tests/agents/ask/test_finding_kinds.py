"""Classification of findings."""

import pytest
from msgspec.structs import replace

from palaver.agents.ask.findings import kind_of
from palaver.core.observation import ObservationType
from palaver.core.results import FindingKind

from ...cases import for_each
from .test_claims import DETAIL


@for_each(
    "declared, title, text, kind",
    [
        ("decision", "Use SQLite", "", FindingKind.DECISION),
        ("bug-fix", "Clock is late", "", FindingKind.FIX),
        ("pattern", "Sort by name", "", FindingKind.PATTERN),
        ("learning", "`npm run fix` repairs what `npm run lint` reports", "", FindingKind.FIX),
        ("debug", "Use `git show` instead of `git show --no-stat`: unrecognized argument", "", FindingKind.FIX),
        ("debug", "Auto-commit works because it skips the conversion", "", FindingKind.OTHER),
        ("learning", "Recommend SQLite", "", FindingKind.DECISION),
        ("learning", "Opted for SQLite", "", FindingKind.DECISION),
        ("learning", "Chose SQLite", "", FindingKind.DECISION),
        ("learning", "Prefers SQLite to JSON", "", FindingKind.DECISION),
        ("learning", "Optimise the token count", "", FindingKind.OTHER),
        ("learning", "Options of the CLI moved", "", FindingKind.OTHER),
        ("learning", "Preferences page crashes", "", FindingKind.OTHER),
        ("learning", "Use SQLite because the plug is pulled", "", FindingKind.DECISION),
        ("feature", "Updated color.md with the chosen color", "I chose red.", FindingKind.OTHER),
        ("feature", "Compare in UTC", "The root cause was the zone.", FindingKind.FIX),
        ("learning", "The zone is missing", "The root cause was the zone.", FindingKind.OTHER),
        ("feature", "Add a hook", "The hook fails silently without a token.", FindingKind.GOTCHA),
        ("general", "Both tables should always be equal", "", FindingKind.PATTERN),
        ("general", "Write docs", "The tables are never equal.", FindingKind.OTHER),
        ("feature", "Add a button", "The button is blue.", FindingKind.OTHER),
    ],
)
def test_kind_follows_type_then_words(declared: str, title: str, text: str, kind: FindingKind) -> None:
    """The type of the observation decides, or else its title. Only a gotcha is recognised by the text."""
    observation = replace(DETAIL.observation, type=ObservationType(declared), title=title)

    assert kind_of(replace(DETAIL, observation=observation), f"{title}. {text}") is kind


@pytest.mark.parametrize("kind", ["document", "code"])
def test_a_document_is_no_fix(kind: str) -> None:
    """A passage of a document or of code has its own kind, whatever its title states."""
    assert kind_of(replace(DETAIL, kind=kind), "Fix the clock.") is FindingKind.DOCUMENT
