"""Recursion guard, which detects Palaver's own text in transcripts.

Palaver's replies and prompts contain no new knowledge. In search results, they would displace the text that they quote.
"""

import re
from enum import StrEnum
from functools import lru_cache
from pathlib import PurePath

OWN_PROMPT_MARK = "[palaver: own prompt]"
"""Prefix of every prompt that Palaver sends to a model or an agent."""

OWN_RUN = "PALAVER_OWN_RUN"
"""Environment variable that Palaver sets for the agents that it starts. Palaver does nothing when they call it."""

OWN_FOLDER = "palaver-own-run-"
"""Prefix of the names of the empty folders in which Palaver starts agents for extraction."""

_NAME = "palaver"
_TOOL = re.compile(r"(?:mcp_+)?(?:plugin_)?palaver(?:_palaver)?[_./:-]+\w")
_QUERIES = "search|show|read|ask|recall|memories|context|export"
_COMMAND = re.compile(
    rf"(?:\S*/)?(?:(?:uvx|uv run|pipx run|python3?(?:\.\d+)? -m) )?(?:\S*/)?palaver (?:{_QUERIES})\b(?!.*(?:&&|;|\n))",
    re.DOTALL,
)
_MARK = "recalled(?:-[0-9]+)?"
_FENCED = re.compile(rf"^[ \t]*<({_MARK})>[ \t]*\n.*?^[ \t]*</\1>[ \t]*$", re.MULTILINE | re.DOTALL)
_BEGUN = re.compile(rf"^[ \t]*<{_MARK}>[ \t]*$.*", re.MULTILINE | re.DOTALL)
_ENDED = re.compile(rf"\A.*?^[ \t]*</{_MARK}>[ \t]*$", re.MULTILINE | re.DOTALL)
_FENCE = "recalled"


class Own(StrEnum):
    """Reason why a line is Palaver's own. Skipped lines are counted by reason."""

    FOLDER = "own-folder"
    """Line written while an agent worked in the folder with Palaver's data."""
    RUN = "own-run"
    """Part of a conversation that Palaver started, or that only queried Palaver."""
    TOOL = "own-tool"
    """Call of a Palaver tool, or its result."""
    RECALLED = "own-recalled"
    """Line that contains only text returned by Palaver."""


def is_suspect(text: str, tool: str) -> bool:
    """Return whether a text or its tool name may come from Palaver, because it contains `palaver` or `recalled`.

    This quick check rejects almost all texts.
    """
    return _NAME in text or _FENCE in text or _NAME in tool


def is_own_prompt(text: str) -> bool:
    """Return whether Palaver sent this prompt."""
    return text.startswith(OWN_PROMPT_MARK)


def is_own_folder(folder: str) -> bool:
    """Return whether Palaver created this folder for an agent that it started."""
    return OWN_FOLDER in folder and PurePath(folder).name.startswith(OWN_FOLDER)


@lru_cache(maxsize=1024)
def is_own_tool(name: str) -> bool:
    """Return whether a tool belongs to Palaver's server. Names in the formats of all agents are recognised."""
    return _TOOL.match(name) is not None


def is_own_command(command: str) -> bool:
    """Return whether a shell command only queries Palaver."""
    return "palaver" in command and _COMMAND.match(command) is not None


def without_recalled(text: str, *, shortened: bool) -> str:
    """Return the text without the parts between the opening and closing marker of a reply.

    A `shortened` text may have lost one marker. In that case, the text before a closing marker or after an opening
    marker is removed. Both markers of a reply have the same random number, so a marker in quoted text has no effect.
    """
    if _FENCE not in text:
        return text
    text = _FENCED.sub("", text)
    if shortened:
        text = _ENDED.sub("", _BEGUN.sub("", text))
    return text.strip()
