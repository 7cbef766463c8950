"""Tables and sections of RESULTS.md are formatted and replaced correctly."""

from pathlib import Path

import pytest

from bench import table
from bench.table import write_section


def test_table() -> None:
    """Table columns are aligned: names left, figures right."""
    expected = "| set | hit@1 |\n| --- | ----: |\n| a   |   0.5 |"

    assert table.table(["set", "hit@1"], [["a", "0.5"]]) == expected


def test_sections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing a section replaces only that section, and writing it again changes nothing."""
    monkeypatch.setattr(table, "RESULTS", tmp_path / "RESULTS.md")
    write_section("Speed", "fast")
    write_section("Retrieval", "### set\n\nold")
    write_section("Retrieval", "### set\n\nnew")
    first = table.RESULTS.read_text()
    write_section("Retrieval", "### set\n\nnew")

    assert table.RESULTS.read_text() == first
    assert first.endswith("## Retrieval\n\n### set\n\nnew\n\n## Speed\n\nfast\n")
    assert first.startswith("# Results\n")
