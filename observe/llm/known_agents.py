"""Commands of known coding agents that answer one prompt without using tools.

The arguments are documented for these agents. They were checked with Claude Code 2.1.197, Codex CLI 0.169.0 and Gemini
CLI 0.61.0 by recording the requests at a local server. No request contained a tool.
"""

from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

NO_TOOLS: Final = """\
# Written by `palaver observe --setup`: Gemini CLI may use no tool when Palaver starts it.
[[rule]]
toolName = "*"
decision = "deny"
priority = 999
"""
"""Content of a policy file for `gemini --admin-policy` that forbids all tools."""


class KnownAgent(Struct, frozen=True):
    """Coding agent and the command that runs it without its user interface."""

    name: str
    command: tuple[str, ...]
    needs_policy: bool = False


_CLAUDE: Final = (
    *("claude", "-p", "--output-format", "json", "--model", "haiku", "--no-session-persistence"),
    # `--tools ""` keeps the tools of MCP servers, which the next option turns off.
    *("--tools", "", "--strict-mcp-config"),
    # This prompt replaces the agent's own 25 kB about tools. It also avoids up to 32,000 tokens of thinking.
    *("--system-prompt", "You extract notes from conversations.", "--settings", '{"alwaysThinkingEnabled": false}'),
)
_CODEX: Final = (
    *("codex", "exec", "--json", "--ephemeral", "--skip-git-repo-check", "--ignore-user-config", "--ignore-rules"),
    *("--sandbox", "read-only", "--disable", "shell_tool", "--disable", "unified_exec"),
    *("--config", 'web_search="disabled"', "--config", 'model_reasoning_effort="low"', "-"),
)
_GEMINI: Final = ("gemini", "--output-format", "json", "--model", "flash", "--skip-trust", "--admin-policy")


def known_agents(policy: Path) -> Sequence[KnownAgent]:
    """Return the known agents. `policy` is the path of a file with `NO_TOOLS`."""
    return (
        KnownAgent("Claude Code", _CLAUDE),
        KnownAgent("Codex CLI", _CODEX),
        KnownAgent("Gemini CLI", (*_GEMINI, str(policy)), needs_policy=True),
    )


def installed_agents(policy: Path) -> list[KnownAgent]:
    """Return the known agents whose program is on PATH, with its full path, because a service has another PATH."""
    found = [(agent, which(agent.command[0])) for agent in known_agents(policy)]
    return [replace(agent, command=(path, *agent.command[1:])) for agent, path in found if path]
