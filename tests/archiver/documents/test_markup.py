"""Tests of `markup.py`."""

import json
from pathlib import Path
from typing import Any

import pytest

from palaver.archiver.documents.document_formats import format_of
from palaver.archiver.documents.markup import (
    html_content,
    notebook_content,
    org_headings,
    org_metadata,
    rst_headings,
    rst_metadata,
)
from palaver.core.document import Chunk, ChunkKind
from palaver.core.errors import DocumentUnreadable

# Markdown is split into chunks at headings, and its front matter is metadata.


READER = format_of(Path("x.md"))


def chunks(text: str) -> list[Chunk]:
    """Return the chunks of a text."""
    return READER.chunks(READER.read(text.encode(), Path("x.md")).sections)


def metadata(text: str) -> dict[str, str]:
    """Return the metadata of a text."""
    return READER.read(text.encode(), Path("x.md")).metadata


def outline(text: str) -> list[tuple[str, str, int, int]]:
    """Return the heading path, the first line of text and the line range of each chunk."""
    return [(one.header_path, one.text.split("\n")[0], one.start_line, one.end_line) for one in chunks(text)]


def test_each_section_has_the_path_of_its_headings() -> None:
    """A section's path joins its headings, such as `A > B`. Its chunk begins with its own heading."""
    text = "Before.\n\n# Setup\nRun it.\n\n## Linux\nApt.\n\n## Mac\nBrew.\n\n# Use\nCall it.\n"

    assert outline(text) == [
        ("", "Before.", 1, 1),
        ("Setup", "# Setup", 3, 4),
        ("Setup > Linux", "## Linux", 6, 7),
        ("Setup > Mac", "## Mac", 9, 10),
        ("Use", "# Use", 12, 13),
    ]


def test_apparent_headings_start_no_section() -> None:
    """Headings in code, lists, block quotes and front matter do not start a section."""
    text = "---\ntitle: A\n---\n# Real\n```sh\n# a comment\n```\n> # quoted\n\n- # listed\n\n    # indented\n"

    assert [one.header_path for one in chunks(text)] == ["", "Real"]


def test_underlined_headings_count() -> None:
    """Underlined (setext) headings start sections, like headings that begin with `#`."""
    assert [path for path, *_ in outline("Top\n===\na\n\nBelow\n-----\nb\n")] == ["Top", "Top > Below"]


def test_levels_may_be_skipped() -> None:
    """A heading belongs to the nearest preceding heading of a higher level."""
    assert [path for path, *_ in outline("# A\na\n### B\nb\n## C\nc\n")] == ["A", "A > B", "A > C"]


def test_a_heading_without_text_appears_only_in_paths() -> None:
    """A heading without text has a chunk only at the end or before a heading of the same level."""
    assert [path for path, *_ in outline("# A\n\n## B\nb\n## C\n## D\n")] == ["A > B", "A > C", "A > D"]


def test_long_sections_are_several_chunks() -> None:
    """The chunks of a long section share a path and have separate line ranges."""
    text = "# A\n" + "\n\n".join(f"Paragraph {number}. " + "Word " * 60 for number in range(8))
    found = chunks(text)

    assert len(found) > 2
    assert {one.header_path for one in found} == {"A"}
    assert all(len(one.text) <= 1_000 for one in found)
    assert found[-1].end_line == text.count("\n") + 1


def test_an_empty_file_has_no_chunk() -> None:
    """Empty files and files with empty lines only have no chunks."""
    assert chunks("") == chunks("\n\n") == []


def test_front_matter_is_metadata() -> None:
    """Front matter is metadata: texts as written, lists joined, nested values omitted. Its rows stay in a chunk."""
    text = "---\ntitle: Tides\ndate: 2026-02-03\ntags: [sea, moon]\nauthor: {name: Ann}\n---\n# A\na\n"

    assert metadata(text) == {"title": "Tides", "date": "2026-02-03", "tags": "sea, moon", "author": ""}
    assert "title: Tides" in chunks(text)[0].text


@pytest.mark.parametrize(
    "front_matter",
    [
        "a: [",
        "- a list",
        "!!python/object/apply:os.system ['true']",
        "[" * 5_000,
        "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: [*c, *c]",
        "a: " + "x" * 20_000,
    ],
    ids=["damaged", "list", "object", "nested", "aliases", "long"],
)
def test_hostile_front_matter_does_no_harm(front_matter: str) -> None:
    """Front matter that is damaged, nested or too long gives no metadata, or empty values, but the text is read."""
    text = f"---\n{front_matter}\n---\n# A\na\n"

    assert not "".join(value for name, value in metadata(text).items() if name != "a")
    assert chunks(text)[-1].header_path == "A"


# reStructuredText is split into chunks at titles, and its docinfo is metadata.


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


def restructured_text_outline(text: str) -> list[tuple[int, str]]:
    """Return the levels and titles of the headings."""
    return [(heading.level, heading.title) for heading in rst_headings(text)]


def test_levels_follow_the_order_of_adornments() -> None:
    """A title with a new adornment is one level deeper. A title with two lines differs from one with one line."""
    assert restructured_text_outline(GUIDE) == [(1, "Kiln guide"), (2, "Heating"), (3, "Gas"), (2, "Cooling")]


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
    assert restructured_text_outline(text) == []


def test_wide_characters_take_two_columns() -> None:
    """A short title in Chinese needs an adornment of twice its length."""
    assert restructured_text_outline("窑\n==\n") == [(1, "窑")]
    assert restructured_text_outline("窑\n=\n") == []


def test_docinfo_is_metadata() -> None:
    """The fields below the document title are metadata, and so is the title."""
    assert rst_metadata(GUIDE) == {
        "title": "Kiln guide",
        "author": "Ann Ash",
        "date": "2026-03-01",
        "abstract": "How to heat a kiln. ",
    }
    assert rst_metadata("Text.\n\n:Author: Ann\n") == {}


# Org documents are split into chunks at headings, and their keywords are metadata.


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


# HTML is split at headings, without scripts, navigation and markup.


def html_sections_outline(page: str | bytes) -> list[tuple[str, str]]:
    """Return the header path and the text of each section."""
    data = page.encode() if isinstance(page, str) else page
    return [(" > ".join(section.headings), section.text) for section in html_content(data, Path("x.html")).sections]


def test_sections_follow_headings() -> None:
    """Each section has the path of its headings. Whitespace is collapsed, except in preformatted text."""
    page = "<h1>A</h1>\n<p>One\n  two &amp; three.</p><h3>B <i>c</i></h3><pre>x\n  y</pre><h2>D</h2>d"

    assert html_sections_outline(page) == [
        ("A", "A\n\nOne two & three."),
        ("A > B c", "B c\n\nx\n  y"),
        ("A > D", "D\n\nd"),
    ]


def test_only_visible_text_is_read() -> None:
    """Scripts, styles and navigation are skipped, and so is everything before the main part."""
    page = """<head><style>p{}</style></head><body>Skip to content<nav><ul><li>Menu</nav>
        <main><script>let x = "</p>"</script><h1>A<a href="#a">\u00b6</a></h1>Text</main></body>"""

    assert html_sections_outline(page) == [("A", "A\n\nText")]


def test_an_element_without_end_does_not_hide_the_page() -> None:
    """Navigation without an end tag hides the text only until the main part begins."""
    assert html_sections_outline("<div><nav>Menu<div><main><p>Text") == [("", "Text")]


def test_rows_of_tables_are_lines() -> None:
    """Each row of a table is a line, with a bar between cells."""
    page = "<table><tr><th>Clay</th><th>Temperature</th></tr><tr><td>Stoneware<td><td>1250</tr></table>"

    assert html_sections_outline(page) == [("", "Clay | Temperature\nStoneware | 1250")]


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
    assert html_sections_outline(f"{declaration}<p>caf\u00e9".encode(encoding)) == [("", "caf\u00e9")]


def test_deep_nesting_costs_nothing() -> None:
    """A page with a hundred thousand nested elements is read."""
    assert html_sections_outline("<div>" * 100_000 + "deep" + "</div>" * 100_000) == [("", "deep")]


def test_a_binary_file_is_an_error() -> None:
    """A file that is not text is refused."""
    with pytest.raises(DocumentUnreadable, match="not CP1252 text"):
        html_sections_outline(bytes(range(256)) * 4)


# Notebooks are split at headings and cells, without outputs.


HERE = Path("x.ipynb")


def notebook(*cells: dict[str, Any], **fields: Any) -> bytes:
    """Return a notebook."""
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": cells, **fields}).encode()


MARKDOWN = {"cell_type": "markdown", "source": ["# Firing\n", "Measure.\n", "## Curve"]}
CODE = {"cell_type": "code", "source": "plot()", "outputs": [{"data": {"image/png": "A" * 1_000_000}}]}


def test_cells_are_sections_below_the_last_heading() -> None:
    """Code is a section of its own, of the kind of code. Outputs are skipped."""
    found = format_of(HERE).chunks(notebook_content(notebook(MARKDOWN, CODE), HERE).sections)

    assert [(one.header_path, one.text, one.kind, one.unit) for one in found] == [
        ("Firing", "Firing\n\nMeasure.", ChunkKind.DOCUMENT, ""),
        ("Firing > Curve", "plot()", ChunkKind.CODE, "cell"),
    ]


def test_version_3_is_read() -> None:
    """Notebooks of version 3 have worksheets, cells with headings, and code in `input`."""
    cells = [{"cell_type": "heading", "level": 2, "source": "Old"}, {"cell_type": "code", "input": ["f()"]}]

    assert notebook_content(notebook(nbformat=3, worksheets=[{"cells": cells}]), HERE).sections[0].headings == ("Old",)


def test_metadata_of_the_notebook_are_kept() -> None:
    """Title, authors and language are metadata, whatever else a notebook contains."""
    metadata = {"title": "Lab", "authors": [{"name": "Ann"}, 7], "language_info": {"name": "python"}, "x": {"y": [1]}}
    found = notebook_content(notebook(metadata=metadata), HERE).metadata

    assert found == {"title": "Lab", "author": "Ann", "programming language": "python"}


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b'{"nbformat": 4, "cells": 7}', b"\xff\xfe", b'{"nbformat": 4, "metadata": ' + b"[" * 100_000],
    ids=len,
)
def test_a_damaged_notebook_is_an_error(data: bytes) -> None:
    """A file that is not a notebook, or that is nested too deeply, is refused with a hint."""
    with pytest.raises(DocumentUnreadable, match="not a Jupyter notebook") as error:
        notebook_content(data, HERE)

    assert error.value.hint
