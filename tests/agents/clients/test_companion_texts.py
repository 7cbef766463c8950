"""Skill, agent and slash commands of other agents are those of the Claude Code plugin, in other formats."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from palaver.agents.ask.agent_definition import agent_definition
from palaver.agents.clients.companion_files import (
    COMMANDS,
    MARK,
    codex_agent,
    gemini_agent,
    gemini_command,
    opencode_agent,
    opencode_command,
    skill_text,
)
from palaver.agents.toolset import find_toolset

PLUGIN = Path(__file__).parents[3] / "agents"
TOOLS = [tool.name for tool in find_toolset("conversation").tools]


def source(name: str) -> str:
    """Return a file of the plugin, with the agent's name outside Claude Code."""
    return (PLUGIN / name).read_text("utf-8").replace("palaver:search-conversation", "search-conversation")


def parts(text: str) -> tuple[dict[str, Any], str]:
    """Return the front matter and the body of a Markdown file."""
    found = re.fullmatch(r"---\n(.*?)\n---\n\n(.*)", text, re.DOTALL)
    assert found is not None
    fields: dict[str, Any] = yaml.safe_load(found[1])
    return fields, found[2].strip()


def test_the_skill_is_that_of_the_plugin() -> None:
    """The skill differs from the plugin's skill only by the mark and the name of the agent."""
    assert skill_text().replace(f"# {MARK}\n", "") == source("skills/past-sessions/SKILL.md")
    assert "`search-conversation`" in skill_text()


def test_codex_gets_the_agent_as_toml() -> None:
    """The agent of Codex has the same name, description and instructions, and cannot write files."""
    agent = agent_definition()

    assert tomllib.loads(codex_agent()) == {
        "name": agent.name,
        "description": agent.description,
        "sandbox_mode": "read-only",
        "developer_instructions": f"{agent.prompt}\n",
    }


def test_gemini_cli_gets_the_agent_with_its_names_of_the_tools() -> None:
    """The agent of Gemini CLI has the same instructions, and only the tools of the archive."""
    fields, body = parts(gemini_agent())
    agent = agent_definition()

    assert fields == {
        "name": agent.name,
        "description": agent.description,
        "tools": [f"mcp_palaver_{name}" for name in agent.plain_tools],
    }
    assert sorted(agent.plain_tools) == sorted(TOOLS)
    assert body == agent.prompt


def test_opencode_gets_the_agent_with_permissions() -> None:
    """The agent of OpenCode has the same instructions, and permission for the tools of the archive only."""
    fields, body = parts(opencode_agent())
    permission = fields.pop("permission")

    assert fields == {"description": agent_definition().description, "mode": "subagent"}
    assert permission.pop("*") == "deny"
    assert permission == {f"palaver_{name}": "allow" for name in TOOLS}
    assert body == agent_definition().prompt


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_have_the_prompts_of_the_plugin(name: str) -> None:
    """Slash commands have the plugin's descriptions and prompts, with the placeholder of the agent."""
    fields, prompt = parts(source(f"commands/{name}.md"))
    gemini = tomllib.loads(gemini_command(name))

    assert parts(opencode_command(name)) == ({"description": fields["description"]}, prompt)
    assert gemini["description"] == fields["description"]
    assert gemini["prompt"].strip() == prompt.replace("$ARGUMENTS", "{{args}}")
    assert "{{args}}" in gemini["prompt"]


def test_every_command_of_the_plugin_is_converted() -> None:
    """No slash command is missing."""
    assert sorted(path.stem for path in (PLUGIN / "commands").glob("*.md")) == sorted(COMMANDS)
