"""The files of the plugin follow the schemas of Claude Code, listed in vendor_facts.json."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from palaver import __version__
from palaver.agents.toolset import find_toolset
from palaver.core.hooks import HookEvent

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "agents"
FACTS: dict[str, Any] = json.loads(Path(__file__).with_name("vendor_facts.json").read_text("utf-8"))
SKILLS = sorted(PLUGIN.glob("skills/*/SKILL.md"))
COMMANDS = sorted(PLUGIN.glob("commands/*.md"))
AGENTS = sorted(PLUGIN.glob("*.md"))


def loaded(name: str) -> Any:
    return json.loads((PLUGIN / name).read_text("utf-8"))


def front_matter(path: Path) -> dict[str, Any]:
    found = re.match(r"---\n(.*?)\n---\n\s*\S", path.read_text("utf-8"), re.DOTALL)
    assert found is not None, "front matter, then a body"
    fields: dict[str, Any] = yaml.safe_load(found[1])
    return fields


def test_manifest_has_documented_fields() -> None:
    """The manifest has the required fields and no undocumented ones, and its version is that of the package."""
    manifest, facts = loaded(".claude-plugin/plugin.json"), FACTS["manifest"]

    assert set(facts["required"]) <= manifest.keys() <= set(facts["fields"])
    assert re.fullmatch(facts["name"], manifest["name"])
    assert re.fullmatch(facts["version"], manifest["version"])
    assert manifest["version"] == __version__


def test_codex_starts_the_server_from_path() -> None:
    """The manifest for Codex says the same, and names the program itself, because Codex replaces no variables there."""
    codex, claude = loaded(".codex-plugin/plugin.json"), loaded(".claude-plugin/plugin.json")

    assert codex.pop("mcpServers") == {"palaver": {"command": "palaver", "args": ["mcp"]}}
    assert codex == {name: claude[name] for name in ("name", "version", "description")}


def test_manifest_names_the_agent() -> None:
    """The manifest names the agent's file, because it is not in the default folder of agents."""
    [agent] = AGENTS

    assert (PLUGIN / loaded(".claude-plugin/plugin.json")["agents"]).resolve() == agent


def test_marketplace_lists_the_folder_of_the_plugin() -> None:
    """The marketplace has the required fields. Its only plugin is the folder that contains the manifest."""
    market, facts = loaded("../.claude-plugin/marketplace.json"), FACTS["marketplace"]

    assert set(facts["required"]) <= market.keys()
    assert set(facts["owner_required"]) <= market["owner"].keys()
    [plugin] = market["plugins"]
    assert set(facts["plugin_required"]) <= plugin.keys()
    assert re.fullmatch(facts["source"], plugin["source"])
    assert (ROOT / plugin["source"]).resolve() == PLUGIN
    assert plugin["name"] == loaded(".claude-plugin/plugin.json")["name"]


def test_mcp_configuration_starts_the_server() -> None:
    """`.mcp.json` starts `palaver mcp` by the script of the plugin, which can be executed."""
    assert loaded(".mcp.json") == {
        "mcpServers": {"palaver": {"command": "${CLAUDE_PLUGIN_ROOT}/bin/palaver", "args": ["mcp"]}}
    }
    assert os.access(PLUGIN / "bin" / "palaver", os.X_OK)


def test_tools_and_the_agent_have_the_names_of_the_plugin() -> None:
    """The agent lists its tools by the names that Claude Code gives them. The texts name the agent as it does."""
    plugin = loaded(".claude-plugin/plugin.json")["name"]
    [server] = loaded(".mcp.json")["mcpServers"]
    expected = {
        FACTS["tool_name"].format(plugin=plugin, server=server, tool=tool.name)
        for tool in find_toolset("conversation").tools
    }
    agent = FACTS["agent_name"].format(plugin=plugin, agent=AGENTS[0].stem)

    assert expected <= {name.strip() for name in front_matter(AGENTS[0])["tools"].split(",")}
    assert all(f"`{agent}`" in path.read_text("utf-8") for path in (SKILLS[0], PLUGIN / "commands" / "ask.md"))
    for name in ("ask", "decisions"):
        assert f"mcp__plugin_{plugin}_{server}" in front_matter(PLUGIN / "commands" / f"{name}.md")["allowed-tools"]


def test_hooks_use_documented_events() -> None:
    """Every hook has a documented event, fields and matcher, a command in the plugin, and a timeout."""
    hooks, facts = loaded("hooks/hooks.json"), FACTS["hooks"]

    assert set(hooks) <= set(facts["top"])
    assert set(hooks["hooks"]) <= set(facts["events"])
    for event, groups in hooks["hooks"].items():
        for group in groups:
            assert group.keys() <= {"matcher", "hooks"}
            assert "matcher" not in group or event in facts["with_matcher"]
            for hook in group["hooks"]:
                assert hook.keys() <= set(facts["hook_fields"])
                assert hook["type"] == "command"
                assert 0 < hook["timeout"] <= 10
                script = re.search(r'"\$\{CLAUDE_PLUGIN_ROOT\}/([^"]+)"', hook["command"])
                assert script is not None
                assert (PLUGIN / script[1]).is_file()


def test_matchers_name_documented_values() -> None:
    """The hook of a session's start runs for every source but forks, which contain its text, and the hook before tools
    only for commands and edits.
    """
    hooks, facts = loaded("hooks/hooks.json")["hooks"], FACTS["hooks"]

    assert {*hooks["SessionStart"][0]["matcher"].split("|"), "fork"} == {*facts["session_start_sources"]}
    tools = hooks["PreToolUse"][0]["matcher"].split("|")
    assert set(tools) <= set(facts["tools"])
    assert "Read" not in tools


def test_every_event_of_palaver_has_a_hook() -> None:
    """Each event of `palaver hooks` is the argument of one hook, and `session-end` of another."""
    groups = loaded("hooks/hooks.json")["hooks"].values()
    arguments = [hook["command"].split()[-1] for [group] in groups for hook in group["hooks"]]

    assert sorted(arguments) == sorted([*HookEvent, "session-end"])


@pytest.mark.parametrize("path", SKILLS, ids=lambda path: path.parent.name)
def test_skills_have_documented_front_matter(path: Path) -> None:
    """A skill has its folder's name and a description of limited length that names triggers."""
    fields, facts = front_matter(path), FACTS["skill"]

    assert set(facts["required"]) <= fields.keys() <= set(facts["fields"])
    assert fields["name"] == path.parent.name
    assert len(fields["name"]) <= facts["name_characters"]
    assert len(fields["description"]) <= facts["description_characters"]
    assert '"why did we"' in fields["description"]


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_commands_have_documented_front_matter(path: Path) -> None:
    """A slash command has a description and only documented fields, and passes its arguments on."""
    fields = front_matter(path)

    assert {"description"} <= fields.keys() <= set(FACTS["command"]["fields"])
    assert "$ARGUMENTS" in path.read_text("utf-8")


@pytest.mark.parametrize("path", AGENTS, ids=lambda path: path.stem)
def test_agents_have_documented_front_matter(path: Path) -> None:
    """An agent has a name, a description and only fields that Claude Code accepts in plugins."""
    fields, facts = front_matter(path), FACTS["agent"]

    assert set(facts["required"]) <= fields.keys() <= set(facts["fields"])
    assert fields["name"] == path.stem


def test_skills_and_commands_exist() -> None:
    """The plugin has a skill and slash commands, so the tests of their front matter check something."""
    assert (len(SKILLS), len(COMMANDS)) == (1, 3)
