"""Markdown, by headings."""

from palaver.archiver.documents.markdown_chunks import chunks


def told(text: str) -> list[tuple[str, str, int, int]]:
    """Each chunk's path, first line and lines."""
    return [(one.header_path, one.text.split("\n")[0], one.start_line, one.end_line) for one in chunks(text)]


def test_each_section_stands_under_the_path_of_its_headings() -> None:
    """`A > B` says where it is; a chunk begins with its own heading."""
    text = "Before.\n\n# Setup\nRun it.\n\n## Linux\nApt.\n\n## Mac\nBrew.\n\n# Use\nCall it.\n"

    assert told(text) == [
        ("", "Before.", 1, 1),
        ("Setup", "# Setup", 3, 4),
        ("Setup > Linux", "## Linux", 6, 7),
        ("Setup > Mac", "## Mac", 9, 10),
        ("Use", "# Use", 12, 13),
    ]


def test_what_only_looks_like_a_heading_is_none() -> None:
    """In code, in lists, in quotes and in front matter a `#` or a row of dashes starts no section."""
    text = "---\ntitle: A\n---\n# Real\n```sh\n# a comment\n```\n> # quoted\n\n- # listed\n\n    # indented\n"

    assert [one.header_path for one in chunks(text)] == ["", "Real"]


def test_underlined_headings_count() -> None:
    """CommonMark knows two ways to write one."""
    assert [path for path, *_ in told("Top\n===\na\n\nBelow\n-----\nb\n")] == ["Top", "Top > Below"]


def test_levels_may_be_skipped() -> None:
    """A heading stands under the nearest one that is higher."""
    assert [path for path, *_ in told("# A\na\n### B\nb\n## C\nc\n")] == ["A", "A > B", "A > C"]


def test_a_heading_over_headings_stands_in_paths_alone() -> None:
    """It says nothing by itself; one at the end, or before one of its own level, does."""
    assert [path for path, *_ in told("# A\n\n## B\nb\n## C\n## D\n")] == ["A > B", "A > C", "A > D"]


def test_long_sections_are_several_chunks() -> None:
    """All of them under the same path, on the lines they stand on."""
    text = "# A\n" + "\n\n".join(f"Paragraph {number}. " + "Word " * 60 for number in range(8))
    found = chunks(text)

    assert len(found) > 2
    assert {one.header_path for one in found} == {"A"}
    assert all(len(one.text) <= 1_000 for one in found)
    assert found[-1].end_line == text.count("\n") + 1


def test_an_empty_file_has_no_chunk() -> None:
    """Nor has one of blank lines."""
    assert chunks("") == chunks("\n\n") == []
