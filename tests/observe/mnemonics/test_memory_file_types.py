"""Memory files and folders get valid names for any title and type."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.observe.mnemonics.mnemonics_folder import kebab, slug


@given(st.text(max_size=300))
def test_every_title_is_a_name(title: str) -> None:
    """Any title gives a valid, visible file name with room for a number and a suffix."""
    name = slug(title)

    assert name
    assert "/" not in name
    assert "\0" not in name
    assert not name.startswith((".", "-"))
    assert len(name.encode()) <= 200
    assert slug(name) == name


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Use PostgreSQL for primary database", "use-postgresql-for-primary-database"),
        ("Don't  use  X -- ever!", "dont-use-x-ever"),
        ("Änderung: 数据库 2", "änderung-数据库-2"),
        ("हिन्दी में", "हिन्दी-में"),
        ("A\u0308", "ä"),
        ("🎉", "untitled"),
        ("../..", "untitled"),
    ],
)
def test_titles_keep_their_letters(title: str, name: str) -> None:
    """Letters, digits and combining marks of all scripts stay. Spaces become dashes. The rest is removed."""
    assert slug(title) == name


@pytest.mark.parametrize(
    "name", ["architecturalDecision", "Architectural Decision", "architectural_decision", "architectural/decision"]
)
def test_types_are_written_in_many_ways(name: str) -> None:
    """Different spellings of a type refer to the same type."""
    assert kebab(name) == "architectural-decision"
