"""Recursion guard: recognise Palaver's own text in transcripts.

Its replies and prompts are no new knowledge, and would displace their sources in search results.
"""

import re
from enum import StrEnum
from functools import lru_cache

OWN_PROMPT_MARK = "[palaver: own prompt]"
"""Beginning of every prompt that Palaver sends to a model or an agent."""

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
    """Reason why a line is Palaver's own; skipped lines are counted by it."""

    FOLDER = "own-folder"
    """Written while an agent worked in the folder with Palaver's data."""
    RUN = "own-run"
    """Part of a conversation that Palaver started, or that did nothing but ask Palaver."""
    TOOL = "own-tool"
    """Call of one of Palaver's tools, or its result."""
    RECALLED = "own-recalled"
    """Nothing but text that Palaver returned."""


def is_suspect(text: str, tool: str) -> bool:
    """Return whether a text or the name of its tool may contain a mark of Palaver; hardly any does."""
    return _NAME in text or _FENCE in text or _NAME in tool


def is_own_prompt(text: str) -> bool:
    """Return whether Palaver sent this prompt."""
    return text.startswith(OWN_PROMPT_MARK)


@lru_cache(maxsize=1024)
def is_own_tool(name: str) -> bool:
    """Return whether a tool belongs to Palaver's server, under any of the names that agents use."""
    return _TOOL.match(name) is not None


def is_own_command(command: str) -> bool:
    """Return whether a shell command does nothing but query Palaver."""
    return "palaver" in command and _COMMAND.match(command) is not None


def without_recalled(text: str, *, shortened: bool) -> str:
    """Return the text without the parts between the markers of a reply.

    A `shortened` text may have lost one marker; then it is cut from its beginning, or to its end. Both markers of a
    reply have the same random number, so a marker in quoted text has no effect.
    """
    if _FENCE not in text:
        return text
    text = _FENCED.sub("", text)
    if shortened:
        text = _ENDED.sub("", _BEGUN.sub("", text))
    return text.strip()
