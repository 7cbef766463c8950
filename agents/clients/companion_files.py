"""Files that offer the archive in Codex, Gemini CLI and OpenCode: skill, agent, slash commands, and a plugin.

Palaver writes each file as a whole, and never changes an existing file that it did not write.
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
from .client_table import Client, find_client
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
        if not {HookEvent.SESSION_START, HookEvent.PROMPT} & set(chosen):
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
