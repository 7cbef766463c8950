"""Classification of findings."""

import pytest

from palaver.agents.ask.finding_kinds import kind_of
from palaver.core.cited_answer import FindingKind
from palaver.core.observation import ObservationType


@pytest.mark.parametrize(
    ("declared", "title", "text", "kind"),
    [
        ("decision", "Use SQLite", "", FindingKind.DECISION),
        ("bug-fix", "Clock is late", "", FindingKind.FIX),
        ("pattern", "Sort by name", "", FindingKind.PATTERN),
        ("learning", "`npm run fix` repairs what `npm run lint` reports", "", FindingKind.FIX),
        ("learning", "Recommend SQLite", "", FindingKind.DECISION),
        ("feature", "Compare in UTC", "The root cause was the zone.", FindingKind.FIX),
        ("feature", "Add a hook", "The hook fails silently without a token.", FindingKind.GOTCHA),
        ("feature", "Add a hook", "I chose a hook over a plugin.", FindingKind.DECISION),
        ("general", "Write docs", "Both tables must stay equal.", FindingKind.PATTERN),
        ("feature", "Add a button", "The button is blue.", FindingKind.OTHER),
    ],
)
def test_kind_follows_type_then_words(declared: str, title: str, text: str, kind: FindingKind) -> None:
    """The type of the observation decides, or else the words of the title and then of the text."""
    assert kind_of(ObservationType(declared), title, f"{title}. {text}") is kind
