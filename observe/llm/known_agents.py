"""Commands of known coding agents that answer one prompt without their tools.

The arguments come from the documentation and source code of Claude Code 2.1, Codex CLI 0.14 and Gemini CLI 0.70.
"""

from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import Final

from msgspec import Struct

NO_TOOLS: Final = """\
# Written by `palaver observe --setup`: Gemini CLI may use no tool when Palaver starts it.
[[rule]]
toolName = "*"
decision = "deny"
priority = 999
"""
"""Policy for `gemini --admin-policy`."""


class KnownAgent(Struct, frozen=True):
    """Coding agent and the command that runs it without its user interface."""

    name: str
    command: tuple[str, ...]
    needs_policy: bool = False


_CLAUDE: Final = (
    *("claude", "-p", "--output-format", "json", "--model", "haiku"),
    # `--tools ""` leaves the tools of MCP servers, which the next option turns off.
    *("--tools", "", "--strict-mcp-config", "--no-session-persistence"),
)
_CODEX: Final = (
    *("codex", "exec", "--json", "--ephemeral", "--skip-git-repo-check", "--ignore-user-config", "--ignore-rules"),
    *("--sandbox", "read-only", "--disable", "shell_tool", "--disable", "unified_exec"),
    *("--config", 'web_search="disabled"', "-"),
)
_GEMINI: Final = ("gemini", "--output-format", "json", "--skip-trust", "--admin-policy")


def known_agents(policy: Path) -> Sequence[KnownAgent]:
    """Return the known agents. `policy` is the path of a file with `NO_TOOLS`."""
    return (
        KnownAgent("Claude Code", _CLAUDE),
        KnownAgent("Codex CLI", _CODEX),
        KnownAgent("Gemini CLI", (*_GEMINI, str(policy)), needs_policy=True),
    )


def installed_agents(policy: Path) -> list[KnownAgent]:
    """Return the known agents whose program is on PATH."""
    return [agent for agent in known_agents(policy) if which(agent.command[0])]
