"""Texts of the skill, the agent, the slash commands and the hooks in the formats of Codex, Gemini CLI and OpenCode.

All texts are derived from the files of the Claude Code plugin.
"""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from ...core.injection import HookEvent
from ..ask.agent_definition import agent_definition, front_matter
from .server_entry import ServerEntry

MARK: Final = "Written by `palaver install`. To keep your own version, delete this line."
"""Comment by which Palaver recognises a file that it wrote."""
COMMANDS: Final = ("ask", "decisions", "hooks")
SKILL: Final = "past-sessions"
_PLUGIN: Final = Path(__file__).parents[1]
_PLUGIN_AGENT: Final = "palaver:search-conversation"
"""Name of the agent in Claude Code, which begins with the name of the plugin."""


def skill_text() -> str:
    """Return the skill file, which has the same format for all agents."""
    text = _source(f"skills/{SKILL}/SKILL.md")
    return text.replace("---\n", f"---\n# {MARK}\n", 1)


def codex_agent() -> str:
    """Return the agent's TOML file for Codex. It lists no tools, because a Codex agent has the tools of its parent."""
    agent = agent_definition()
    fields = {
        "name": agent.name,
        "description": agent.description,
        "sandbox_mode": "read-only",
        "developer_instructions": agent.prompt,
    }
    return _toml(fields)


def gemini_agent() -> str:
    """Return the agent's Markdown file for Gemini CLI."""
    agent = agent_definition()
    tools = [f"mcp_palaver_{name}" for name in agent.plain_tools]
    return _markdown({"name": agent.name, "description": agent.description, "tools": tools}, agent.prompt)


def opencode_agent() -> str:
    """Return the agent's Markdown file for OpenCode, which takes the agent's name from the file name."""
    agent = agent_definition()
    permission = {"*": "deny", **{f"palaver_{name}": "allow" for name in agent.plain_tools}}
    fields = {"description": agent.description, "mode": "subagent", "permission": permission}
    return _markdown(fields, agent.prompt)


def gemini_command(name: str) -> str:
    """Return the TOML file of a slash command for Gemini CLI."""
    description, prompt = _command(name)
    return _toml({"description": description, "prompt": prompt.replace("$ARGUMENTS", "{{args}}")})


def opencode_command(name: str) -> str:
    """Return the Markdown file of a slash command for OpenCode."""
    description, prompt = _command(name)
    return _markdown({"description": description}, prompt)


def opencode_plugin(server: ServerEntry, chosen: Collection[str]) -> str:
    """Return the plugin for OpenCode, which runs the chosen hooks with the program of the server."""
    events = [event for event in (HookEvent.SESSION_START, HookEvent.PROMPT) if event in chosen]
    values = {
        "COMMAND": json.dumps(server.program),
        "ENVIRONMENT": json.dumps(server.env),
        "EVENTS": json.dumps(events),
    }
    text = _source("hooks/opencode-plugin.js").replace("@MARK@", MARK)
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    return text


def _command(name: str) -> tuple[str, str]:
    """Return the description and the prompt of a slash command."""
    fields, prompt = front_matter(_source(f"commands/{name}.md"))
    return fields["description"], prompt


def _source(name: str) -> str:
    """Return the text of a file of the plugin, with the agent's name without the prefix `palaver:`."""
    return (_PLUGIN / name).read_text("utf-8").replace(_PLUGIN_AGENT, agent_definition().name)


def _markdown(fields: Mapping[str, object], body: str) -> str:
    """Return a Markdown file with front matter. Its values are written as JSON, which is valid YAML."""
    rows = (f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items())
    return "\n".join(["---", f"# {MARK}", *rows, "---", "", body, ""])


def _toml(fields: Mapping[str, str]) -> str:
    """Return a TOML file. A value of several lines becomes a literal string (`'''`), which stays readable."""
    rows = (f"{name} = {_toml_value(value)}" for name, value in fields.items())
    return "\n".join([f"# {MARK}", *rows, ""])


def _toml_value(value: str) -> str:
    return f"'''\n{value}\n'''" if "\n" in value and "'''" not in value else json.dumps(value, ensure_ascii=False)
