"""Skill, agent, slash commands, hooks and plugin as files for Codex, Gemini CLI and OpenCode.

All texts are derived from the files of the Claude Code plugin. Palaver writes each file as a whole, and never changes
an existing file that it did not write.
"""

import json
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path, PurePath
from typing import Final

from msgspec import Struct

from ...core.errors import ClientConfigUnusable, InvalidInput
from ...core.hooks import OPENCODE, HookEvent
from ..ask.agent_definition import agent_definition, front_matter
from .client_setup import Action, ConfigChange, read_config
from .client_table import Client, ServerEntry, find_client

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


def _supported(chosen: Collection[str]) -> list[str]:
    """Return the chosen events that OpenCode supports."""
    return [event for event in HookEvent if OPENCODE in event.hook.names and event in chosen]


def opencode_plugin(server: ServerEntry, chosen: Collection[str]) -> str:
    """Return the plugin for OpenCode, which runs the chosen hooks with the program of the server."""
    values = {
        "COMMAND": json.dumps(server.program),
        "ENVIRONMENT": json.dumps(server.env),
        "EVENTS": json.dumps(_supported(chosen)),
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


_SKILL_FILE: Final = f"skills/{SKILL}/SKILL.md"


class CompanionFile(Struct, frozen=True):
    """File of a coding agent, and the function that returns its text.

    Attributes:
        folders: Number of folders above the file that Palaver creates, and deletes if they are empty.
    """

    client: Client
    folders: int
    text: Callable[[], str]


def _beside(agent: str, file: str, text: Callable[[], str], title: str, group: str = "skills") -> CompanionFile:
    return CompanionFile(find_client(agent).beside(file, group, title), len(PurePath(file).parents) - 1, text)


SKILL_FILES: Final = (
    _beside("codex", _SKILL_FILE, skill_text, ", skill"),
    _beside("codex", "agents/search-conversation.toml", codex_agent, ", agent"),
    _beside("gemini", _SKILL_FILE, skill_text, ", skill"),
    _beside("gemini", "agents/search-conversation.md", gemini_agent, ", agent"),
    *(
        _beside("gemini", f"commands/palaver/{name}.toml", partial(gemini_command, name), f", command /palaver:{name}")
        for name in COMMANDS
    ),
    _beside("opencode", _SKILL_FILE, skill_text, ", skill"),
    _beside("opencode", "agents/search-conversation.md", opencode_agent, ", agent"),
    *(
        _beside(
            "opencode", f"commands/palaver-{name}.md", partial(opencode_command, name), f", command /palaver-{name}"
        )
        for name in COMMANDS
    ),
)


def hook_file(server: ServerEntry, chosen: Collection[str]) -> CompanionFile:
    """Return the OpenCode plugin that runs the chosen hooks. `server` names the program and its environment."""

    def text() -> str:
        if not _supported(chosen):
            raise InvalidInput("OpenCode hooks: all hooks are off", hint="Run `palaver hooks on` first.")
        return opencode_plugin(server, chosen)

    return _beside("opencode", "plugins/palaver.js", text, " hooks", "hooks")


def has_hook_file() -> bool:
    """Return whether the OpenCode plugin that runs the hooks is installed.

    Raises:
        ClientConfigUnusable: The file cannot be read.
    """
    return plan_file_removal(hook_file(ServerEntry("", (), {}), ())).is_needed


def plan_file(file: CompanionFile) -> ConfigChange:
    """Plan to write a file. Nothing is written.

    Raises:
        ClientConfigUnusable: The existing file cannot be read, or Palaver did not write it.
    """
    path, after = file.client.path, file.text().encode()
    before = read_config(path)
    if before is not None and not _is_own(before):
        raise ClientConfigUnusable(path, "another file with this name, which Palaver did not write")
    action: Action = "add" if before is None else "keep" if before == after else "update"
    return ConfigChange(file.client, path, action, before, after, folders=file.folders)


def plan_file_removal(file: CompanionFile) -> ConfigChange:
    """Plan to delete a file that Palaver wrote. Nothing is deleted.

    Raises:
        ClientConfigUnusable: The file cannot be read.
    """
    before = read_config(file.client.path)
    if before is None or not _is_own(before):
        return ConfigChange(file.client, file.client.path, "absent", before, before, folders=file.folders)
    return ConfigChange(file.client, file.client.path, "remove", before, None, folders=file.folders)


def _is_own(content: bytes) -> bool:
    return MARK.encode() in content
