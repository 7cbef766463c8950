"""reStructuredText is split into chunks at titles, and its docinfo is metadata."""

import pytest

from palaver.archiver.documents.markup import rst_headings, rst_metadata

GUIDE = """\
==========
Kiln guide
==========
:Author: Ann Ash
:Date: 2026-03-01
:Abstract: How to heat
    a kiln.

Heating
=======
Slowly.

Gas
---
Open the valve.

Cooling
=======
"""


def outline(text: str) -> list[tuple[int, str]]:
    """Return the levels and titles of the headings."""
    return [(heading.level, heading.title) for heading in rst_headings(text)]


def test_levels_follow_the_order_of_adornments() -> None:
    """A title with a new adornment is one level deeper. A title with two lines differs from one with one line."""
    assert outline(GUIDE) == [(1, "Kiln guide"), (2, "Heating"), (3, "Gas"), (2, "Cooling")]


@pytest.mark.parametrize(
    "text",
    [
        "text\nmore text\n=========\n",
        "text\n\n----\n\nmore\n",
        "=====  =====\nA      B\n=====  =====\n1      2\n=====  =====\n",
        ".. code:: text\n\n   Title\n   =====\n",
        "Long title\n===\n",
        "+---+\n| a |\n+---+\n",
    ],
    ids=["paragraph", "transition", "table", "indented", "short", "grid"],
)
def test_other_rows_are_no_titles(text: str) -> None:
    """Transitions, tables, indented blocks and paragraphs contain no titles."""
    assert outline(text) == []


def test_wide_characters_take_two_columns() -> None:
    """A short title in Chinese needs an adornment of twice its length."""
    assert outline("窑\n==\n") == [(1, "窑")]
    assert outline("窑\n=\n") == []


def test_docinfo_is_metadata() -> None:
    """The fields below the document title are metadata, and so is the title."""
    assert rst_metadata(GUIDE) == {
        "title": "Kiln guide",
        "author": "Ann Ash",
        "date": "2026-03-01",
        "abstract": "How to heat a kiln. ",
    }
    assert rst_metadata("Text.\n\n:Author: Ann\n") == {}
