"""Org documents are split into chunks at headings, and their keywords are metadata."""

from palaver.archiver.documents.markup import org_headings, org_metadata

NOTES = """\
#+TITLE: Glaze notes
#+filetags: :shop:blue:
* TODO Buy cobalt :shop:
Blue needs *cobalt*.
*bold* text
** Where
#+BEGIN_SRC sh
,* not a heading
#+END_SRC
"""


def test_stars_begin_headings() -> None:
    """A row that begins with stars and a space is a heading. Bold text and escaped stars are not."""
    found = [(heading.level, heading.title, heading.line) for heading in org_headings(NOTES)]

    assert found == [(1, "TODO Buy cobalt :shop:", 2), (2, "Where", 5)]


def test_keywords_are_metadata() -> None:
    """Keywords that describe the document are metadata. Other keywords are not."""
    assert org_metadata(NOTES) == {"title": "Glaze notes", "filetags": ":shop:blue:"}
