"""HTML is split at headings, without scripts, navigation and markup."""

from pathlib import Path

import pytest

from palaver.archiver.documents.markup import html_content
from palaver.core.errors import DocumentUnreadable


def outline(page: str | bytes) -> list[tuple[str, str]]:
    """Return the header path and the text of each section."""
    data = page.encode() if isinstance(page, str) else page
    return [(" > ".join(section.headings), section.text) for section in html_content(data, Path("x.html")).sections]


def test_sections_follow_headings() -> None:
    """Each section has the path of its headings. Whitespace is collapsed, except in preformatted text."""
    page = "<h1>A</h1>\n<p>One\n  two &amp; three.</p><h3>B <i>c</i></h3><pre>x\n  y</pre><h2>D</h2>d"

    assert outline(page) == [("A", "A\n\nOne two & three."), ("A > B c", "B c\n\nx\n  y"), ("A > D", "D\n\nd")]


def test_only_visible_text_is_read() -> None:
    """Scripts, styles and navigation are skipped, and so is everything before the main part."""
    page = """<head><style>p{}</style></head><body>Skip to content<nav><ul><li>Menu</nav>
        <main><script>let x = "</p>"</script><h1>A<a href="#a">\u00b6</a></h1>Text</main></body>"""

    assert outline(page) == [("A", "A\n\nText")]


def test_an_element_without_end_does_not_hide_the_page() -> None:
    """Navigation without an end tag hides the text only until the main part begins."""
    assert outline("<div><nav>Menu<div><main><p>Text") == [("", "Text")]


def test_rows_of_tables_are_lines() -> None:
    """Each row of a table is a line, with a bar between cells."""
    page = "<table><tr><th>Clay</th><th>Temperature</th></tr><tr><td>Stoneware<td><td>1250</tr></table>"

    assert outline(page) == [("", "Clay | Temperature\nStoneware | 1250")]


def test_metadata_come_from_the_head() -> None:
    """The title and the usual `meta` elements are metadata."""
    page = """<title>Clay\n types</title><meta name="Author" content="Cleo"><meta property="og:title" content="x">
        <meta name="viewport" content="width=1"><body><svg><title>Icon</title></svg>Text"""

    assert html_content(page.encode(), Path("x.html")).metadata == {"title": "Clay types", "author": "Cleo"}


@pytest.mark.parametrize(
    ("declaration", "encoding"),
    [
        ('<meta charset="iso-8859-2">', "iso-8859-2"),
        ("", "utf-8"),
        ("", "cp1252"),
        ("", "utf-16"),
        ("<meta charset=x>", "utf-8"),
    ],
)
def test_the_declared_encoding_is_used(declaration: str, encoding: str) -> None:
    """A page is decoded with its byte order mark or declared encoding, or else as UTF-8 or Windows-1252."""
    assert outline(f"{declaration}<p>caf\u00e9".encode(encoding)) == [("", "caf\u00e9")]


def test_deep_nesting_costs_nothing() -> None:
    """A page with a hundred thousand nested elements is read."""
    assert outline("<div>" * 100_000 + "deep" + "</div>" * 100_000) == [("", "deep")]


def test_a_binary_file_is_an_error() -> None:
    """A file that is not text is refused."""
    with pytest.raises(DocumentUnreadable, match="not CP1252 text"):
        outline(bytes(range(256)) * 4)
