"""Tests for cli/output.py: no line breaks within a word."""

import re

import pytest

from palaver.cli.output import wrapped

STYLE = re.compile(r"\x1b\[\d*m")
ROWS = (
    "The kettle boils over when its lid is closed, so leave the lid ajar until the water simmers quietly.",
    "- The kettle boils over when its lid is closed, so leave the lid ajar until the water simmers.",
    "   12. Numbered items of a list are indented as far as their text, which is easier to read than the margin.",
    "obs-12 2026-03-01 0fd7 bug-fix 0.71 High water was one hour late because the tide clock compares local times",
    "0fd7 2026-03-01 09:12 [tide-clock] High water was one hour late because the tide clock compares local times",
    "language model  not used, because neither a key in the environment nor a budget in config.toml is set",
    "\x1b[1mA bold heading with more words than fit into one row of a narrow terminal window\x1b[0m",
    "To restore the memory that this one superseded, run `palaver memories undo mem_1041` in any folder.",
    "高水位が一時間遅れた because the tide clock compares local times 高水位が一時間遅れた and not instants.",
)


def words(text: str) -> list[str]:
    return STYLE.sub("", text).split()


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_rows_break_between_words(width: int) -> None:
    """Every row fits into the terminal, and its words and styles are unchanged."""
    for row in ROWS:
        lines = wrapped(row, width).split("\n")
        assert words(" ".join(lines)) == words(row)
        assert STYLE.findall("".join(lines)) == STYLE.findall(row)
        if row.isascii():
            assert max(len(STYLE.sub("", line)) for line in lines) <= width, row
        assert all(line == line.rstrip() for line in lines)


def test_further_lines_are_indented_as_far_as_the_text() -> None:
    """Items of lists, entries and columns of a table keep their shape."""
    indents = {row: len(line) - len(line.lstrip()) for row in ROWS for line in wrapped(row, 60).split("\n")[1:2]}
    assert list(indents.values()) == [0, 2, 7, 4, 4, 16, 0, 0, 0]


def test_commands_stay_whole() -> None:
    """A command between backquotes moves to the next line whole. A row that is a command is not broken at all."""
    page = wrapped("To restore the memory, run `palaver memories undo mem_1041` now.", 50)
    assert page == "To restore the memory, run\n`palaver memories undo mem_1041` now."
    command = '  PALAVER_HOME=/srv/archive palaver search "high water was one hour late" --project tide-clock'
    assert wrapped(command, 40) == command


def test_words_longer_than_a_line_stay_whole() -> None:
    """Paths can be copied, and text between backquotes is broken at its spaces."""
    path = "/home/demo/" + "folder/" * 20 + "file.md"
    assert wrapped(f"Read the file {path} today.", 60) == f"Read the file\n{path}\ntoday."
    assert wrapped(f"- {path}: line 3", 60) == f"- {path}:\n  line 3"
    assert wrapped(f"Ran `{'sort -u ' * 12}words`", 40).count("\n") == 2


def test_short_rows_and_empty_rows_are_unchanged() -> None:
    """Code and tables that fit keep their spaces."""
    page = "def f():\n    return  1\n\n\ta  b   \n"
    assert wrapped(page, 80) == page
