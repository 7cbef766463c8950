"""Recursion guard, which detects Palaver's own text in transcripts.

Palaver's replies and prompts contain no new knowledge. If they were indexed, search would find them in place of the
original text that they quote.
"""

import re
from enum import StrEnum
from functools import lru_cache
from pathlib import PurePath

OWN_PROMPT_MARK = "[palaver: own prompt]"
"""Prefix of every prompt that Palaver sends to a model or an agent."""

OWN_RUN = "PALAVER_OWN_RUN"
"""Environment variable that Palaver sets for agents that it starts. If it is set, Palaver exits at once."""

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
    """Reason why a line counts as Palaver's own output. Such lines are skipped and counted by reason."""

    FOLDER = "own-folder"
    """Line written while the working folder of the agent was inside the Palaver home."""
    RUN = "own-run"
    """Line of an exchange with a prompt from Palaver, or of a sub-agent that only called Palaver."""
    TOOL = "own-tool"
    """Call of a Palaver tool, or its result."""
    RECALLED = "own-recalled"
    """Line that contains only text returned by Palaver."""


def is_suspect(text: str, tool: str) -> bool:
    """Return whether a text or the name of its tool contains `palaver` or `recalled`, and may thus come from Palaver.

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
    """Return whether a tool belongs to Palaver's server, such as `mcp__palaver__search` of Claude Code."""
    return _TOOL.match(name) is not None


def is_own_command(command: str) -> bool:
    """Return whether a shell command only queries Palaver."""
    return "palaver" in command and _COMMAND.match(command) is not None


def without_recalled(text: str, *, shortened: bool) -> str:
    """Return the text without Palaver's replies, which lines such as `<recalled-7>` and `</recalled-7>` enclose.

    A `shortened` text may have lost one of these markers. The text before a single closing marker, or after a single
    opening marker, is then removed. Both markers of a reply have the same random number, so other markers in the text
    of a reply have no effect.
    """
    if _FENCE not in text:
        return text
    text = _FENCED.sub("", text)
    if shortened:
        text = _ENDED.sub("", _BEGUN.sub("", text))
    return text.strip()
