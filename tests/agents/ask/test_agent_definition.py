"""The definition of the agent `search-conversation`."""

import yaml

from palaver.agents.ask.agent_definition import agent_definition, source
from palaver.agents.conversation_tools import CONVERSATION

_FRONT = {"name", "description", "tools", "model"}
"""Fields of a subagent that Claude Code documents and that this definition uses."""


def test_front_matter_is_yaml() -> None:
    """A YAML parser reads the same front matter as the dispatcher."""
    _, front, _ = source().split("---\n", 2)
    fields = yaml.safe_load(front)
    definition = agent_definition()

    assert set(fields) == _FRONT
    assert fields["name"] == definition.name == "search-conversation"
    assert fields["description"] == definition.description
    assert fields["model"] == definition.model
    assert fields["tools"].split(", ") == list(definition.tools)


def test_agent_has_the_three_tools() -> None:
    """The agent may use the tools of the toolset `conversation` and no others, under both names of the server."""
    own = [tool.name for tool in CONVERSATION.tools]

    assert list(agent_definition().plain_tools) == own
    assert list(agent_definition().tools) == [
        f"{server}__{name}" for server in ("mcp__palaver", "mcp__plugin_palaver_palaver") for name in own
    ]


def test_prompt_names_each_tool() -> None:
    """The instructions name each tool, and the rule for quoted text."""
    prompt = agent_definition().prompt

    assert all(f"`{name}`" in prompt for name in agent_definition().plain_tools)
    assert "<recalled-N>" in prompt
    assert not prompt.startswith("---")
