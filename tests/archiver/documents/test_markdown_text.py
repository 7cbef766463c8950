"""Markdown is split into chunks at headings, and its front matter is metadata."""

from pathlib import Path

import pytest

from palaver.archiver.documents.document_formats import format_of
from palaver.core.document import Chunk

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
