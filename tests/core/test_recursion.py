"""Tests of core/home.py."""

import pytest

from palaver.core.home import OWN_PROMPT_MARK, is_own_command, is_own_prompt, is_own_tool, without_recalled


@pytest.mark.parametrize(
    "name",
    [
        "mcp__palaver__search",
        "mcp__plugin_palaver_palaver__read",
        "mcp_palaver_search",
        "palaver_search",
        "palaver-read",
    ],
)
def test_own_tools_are_detected_with_all_prefixes(name: str) -> None:
    """Palaver's tools are detected with the prefixes of all agents."""
    assert is_own_tool(name)


@pytest.mark.parametrize(
    "name", ["", "search", "palaver", "mcp__jira__palaver_issue", "mcp__palaverish__search", "Bash"]
)
def test_other_tools_are_not_detected(name: str) -> None:
    """A tool is detected by its server, not by a word in its name."""
    assert not is_own_tool(name)


@pytest.mark.parametrize(
    "command", ["palaver search 'x' --json", "uvx palaver read a --start 3 | head", "/usr/bin/palaver ask it  # why"]
)
def test_own_commands_are_detected(command: str) -> None:
    """Palaver's commands are detected with any launcher."""
    assert is_own_command(command)


@pytest.mark.parametrize("command", ["", "palaver status", "make && palaver search x", "palaver search x; rm b", "ls"])
def test_combined_command_is_not_detected(command: str) -> None:
    """A command that does more than query Palaver is not detected."""
    assert not is_own_command(command)


def test_own_prompt_begins_with_the_prefix() -> None:
    """Only a prompt that begins with the prefix is Palaver's own."""
    assert is_own_prompt(f"{OWN_PROMPT_MARK}\nExtract.")
    assert not is_own_prompt(f"What does {OWN_PROMPT_MARK} mean?")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Look:\n<recalled>\nold words\n</recalled>\nDo it again.", "Look:\n\nDo it again."),
        ("<recalled>\nold\n</recalled>", ""),
        ("A\n<recalled-12345678>\nold\n</recalled-12345678>\nB", "A\n\nB"),
        ("<recalled-12345678>\nold\n</recalled-99999999>\n</recalled>\nold\n</recalled-12345678>\nB", "B"),
        ("  <recalled>\n  old\n  </recalled>\nA\n<recalled>\nold\n</recalled>", "A"),
        ("Why does <recalled> stand there?", "Why does <recalled> stand there?"),
        ("What is\n<recalled>\ngood for?", "What is\n<recalled>\ngood for?"),
        ("nothing of ours", "nothing of ours"),
    ],
)
def test_text_between_markers_is_removed(text: str, expected: str) -> None:
    """Text between markers is removed, and other text is kept."""
    assert without_recalled(text, shortened=False) == expected


@pytest.mark.parametrize("text", ["A\n<recalled>\nold\n[… 9 characters left out …]", "old\n</recalled>\nA", "A"])
def test_single_marker_is_enough_in_shortened_text(text: str) -> None:
    """If a shortened text has only one marker, the text is removed after an opening or before a closing marker."""
    assert without_recalled(text, shortened=True) == "A"
