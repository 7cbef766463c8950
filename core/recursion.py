"""Recursion: the signs by which Palaver knows its own words when they come back to it in a transcript.

What it answered, asked or was asked to extract is no new knowledge: found again as such, it would crowd out what it was
made from.
"""

import re
from enum import StrEnum
from functools import lru_cache

OWN_PROMPT_MARK = "[palaver: own prompt]"
"""Every prompt that Palaver itself sends to a model or an agent begins with this."""

_NAME = "palaver"
_TOOL = re.compile(r"(?:mcp_+)?(?:plugin_)?palaver(?:_palaver)?[_./:-]+\w")
_ASKING = "search|show|read|ask|recall|memories|context|export"
_COMMAND = re.compile(
    rf"(?:\S*/)?(?:(?:uvx|uv run|pipx run|python3?(?:\.\d+)? -m) )?(?:\S*/)?palaver (?:{_ASKING})\b(?!.*(?:&&|;|\n))",
    re.DOTALL,
)
_MARK = "recalled(?:-[0-9]+)?"
_FENCED = re.compile(rf"^[ \t]*<({_MARK})>[ \t]*\n.*?^[ \t]*</\1>[ \t]*$", re.MULTILINE | re.DOTALL)
_BEGUN = re.compile(rf"^[ \t]*<{_MARK}>[ \t]*$.*", re.MULTILINE | re.DOTALL)
_ENDED = re.compile(rf"\A.*?^[ \t]*</{_MARK}>[ \t]*$", re.MULTILINE | re.DOTALL)
_FENCE = "recalled"


class Own(StrEnum):
    """Why a line is Palaver's own: the reason under which it is counted."""

    FOLDER = "own-folder"
    """Said while an agent worked in the folder that holds Palaver's data."""
    RUN = "own-run"
    """Said in a conversation that Palaver led itself, or in one that did nothing but ask it."""
    TOOL = "own-tool"
    """A call of one of Palaver's tools, or what it answered."""
    RECALLED = "own-recalled"
    """Nothing but text that Palaver gave back, wherever it was put."""


def is_suspect(text: str, tool: str) -> bool:
    """Whether what was said with a tool, or without one, may carry a sign at all. Nearly nothing does."""
    return _NAME in text or _FENCE in text or _NAME in tool


def is_own_prompt(text: str) -> bool:
    """Whether a prompt is one that Palaver sent."""
    return text.startswith(OWN_PROMPT_MARK)


@lru_cache(maxsize=1024)
def is_own_tool(name: str) -> bool:
    """Whether a tool is of Palaver's server, under any of the names that agents give to the tools of servers."""
    return _TOOL.match(name) is not None


def is_own_command(command: str) -> bool:
    """Whether a shell command does nothing but ask Palaver for something it keeps."""
    return "palaver" in command and _COMMAND.match(command) is not None


def without_recalled(text: str, *, shortened: bool) -> str:
    """Return the text without what is between the two markers of a reply; unchanged where there are none.

    Of a `shortened` text one marker may be lost: then it is cut from its beginning, or to its end. Both markers of a
    reply carry the same random number, so quoted text that has a marker ends nothing.
    """
    if _FENCE not in text:
        return text
    text = _FENCED.sub("", text)
    if shortened:
        text = _ENDED.sub("", _BEGUN.sub("", text))
    return text.strip()
