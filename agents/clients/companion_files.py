"""Files that offer the archive in Codex, Gemini CLI and OpenCode: skill, agent, slash commands, and a plugin.

Each file is written as a whole. A file at the same path that Palaver did not write is never changed.
"""

from collections.abc import Callable, Collection
from functools import partial
from pathlib import PurePath
from typing import Final

from msgspec import Struct

from ...core.errors import ClientConfigUnusable, InvalidInput
from ...core.injection import HookEvent
from .client_file import read_config
from .client_setup import Action, ConfigChange
from .client_table import Client
from .companion_texts import (
    COMMANDS,
    MARK,
    SKILL,
    codex_agent,
    gemini_agent,
    gemini_command,
    opencode_agent,
    opencode_command,
    opencode_plugin,
    skill_text,
)
from .server_entry import ServerEntry

_SKILL_FILE: Final = f"skills/{SKILL}/SKILL.md"


class CompanionFile(Struct, frozen=True):
    """File of a coding agent, and the function that returns its text.

    Attributes:
        folders: Number of folders above the file that Palaver creates, and deletes if they are empty.
    """

    client: Client
    folders: int
    text: Callable[[], str]


def _codex(title: str, file: str, text: Callable[[], str]) -> CompanionFile:
    client = Client("codex-skills", f"Codex, {title}", "~/.codex", file, variable="CODEX_HOME")
    return CompanionFile(client, _depth(file), text)


def _gemini(title: str, file: str, text: Callable[[], str]) -> CompanionFile:
    client = Client("gemini-skills", f"Gemini CLI, {title}", "~", f".gemini/{file}", variable="GEMINI_CLI_HOME")
    return CompanionFile(client, _depth(file), text)


def _opencode(title: str, file: str, text: Callable[[], str], name: str = "opencode-skills") -> CompanionFile:
    client = Client(name, f"OpenCode{title}", "{config}/opencode", file)
    return CompanionFile(client, _depth(file), text)


def _depth(file: str) -> int:
    return len(PurePath(file).parents) - 1


SKILL_FILES: Final = (
    _codex("skill", _SKILL_FILE, skill_text),
    _codex("agent", "agents/search-conversation.toml", codex_agent),
    _gemini("skill", _SKILL_FILE, skill_text),
    _gemini("agent", "agents/search-conversation.md", gemini_agent),
    *(
        _gemini(f"command /palaver:{name}", f"commands/palaver/{name}.toml", partial(gemini_command, name))
        for name in COMMANDS
    ),
    _opencode(", skill", _SKILL_FILE, skill_text),
    _opencode(", agent", "agents/search-conversation.md", opencode_agent),
    *(
        _opencode(f", command /palaver-{name}", f"commands/palaver-{name}.md", partial(opencode_command, name))
        for name in COMMANDS
    ),
)


def hook_file(server: ServerEntry, chosen: Collection[str]) -> CompanionFile:
    """Return the plugin with the chosen hooks for OpenCode. `server` names the program and its environment."""

    def text() -> str:
        if not {HookEvent.SESSION_START, HookEvent.PROMPT} & set(chosen):
            raise InvalidInput("OpenCode hooks: all hooks are off", hint="Run `palaver hooks on` first.")
        return opencode_plugin(server, chosen)

    return _opencode(" hooks", "plugins/palaver.js", text, "opencode-hooks")


def has_hook_file() -> bool:
    """Return whether the plugin with the hooks for OpenCode is installed.

    Raises:
        ClientConfigUnusable: The file cannot be read.
    """
    return plan_file_removal(hook_file(ServerEntry("", (), {}), ())).is_needed


def plan_file(file: CompanionFile) -> ConfigChange:
    """Plan to write a file. Nothing is written.

    Raises:
        ClientConfigUnusable: Palaver did not write the file that exists, or it cannot be read.
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
