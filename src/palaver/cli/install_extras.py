"""Extras that `palaver install` adds only by name: hooks, and the skill, the agent and the slash commands."""

from collections.abc import Callable, Collection
from functools import partial
from typing import Final

from msgspec import Struct

from palaver.agents.clients.client_setup import ConfigChange
from palaver.agents.clients.client_table import Client, find_client
from palaver.agents.clients.companion_files import SKILL_FILES, CompanionFile, hook_file, plan_file, plan_file_removal
from palaver.agents.clients.hook_setup import HOOK_CLIENTS, hooks_text, plan_hooks, plan_hooks_removal
from palaver.agents.clients.server_entry import own_server
from palaver.core.config import Config
from palaver.core.home import Home

from .program import program_words

GROUPS: Final = ("hooks", "skills")
"""Names of the groups of extras. An extra is named after its agent and group, such as `codex-hooks`."""
_AGENTS: Final = ("codex", "gemini", "opencode")
EXTRA_NAMES: Final = (*GROUPS, *(f"{agent}-{group}" for group in GROUPS for agent in _AGENTS))


class Extra(Struct, frozen=True):
    """Hooks or a file of one coding agent, with the functions that plan its changes and return its text."""

    client: Client
    add: Callable[[], ConfigChange]
    remove: Callable[[], ConfigChange]
    text: Callable[[], str]


def all_extras(home: Home) -> list[Extra]:
    """Return the hooks and files of all agents. Hooks run the program with this home."""
    server, chosen = own_server(program_words(), home), Config.read(home.config).hooks
    hooks = [
        Extra(
            each.client,
            partial(plan_hooks, each, server, chosen),
            partial(plan_hooks_removal, each),
            partial(hooks_text, each, server, chosen),
        )
        for each in HOOK_CLIENTS
    ]
    return [*hooks, _of_file(hook_file(server, chosen)), *map(_of_file, SKILL_FILES)]


def extras(names: Collection[str], home: Home, *, every: bool = False) -> list[Extra]:
    """Return the extras with these names. The name of a group selects its extras for all installed agents.

    `every` selects all extras of the installed agents. The settings are read only if an extra is selected. Raises
    `ConfigInvalid`.
    """
    if not (every or any(name in EXTRA_NAMES for name in names)):
        return []
    return [
        each
        for each in all_extras(home)
        if each.client.name in names
        or ((every or each.client.name.rpartition("-")[2] in names) and _is_possible(each.client))
    ]


def extras_hint(connected: Collection[str]) -> str:
    """Return how to add the skill, the agent and the hooks, or an empty text if the connected clients have them."""
    files = [each for each in SKILL_FILES if each.client.name.partition("-")[0] in connected]
    missing = list(dict.fromkeys(program_title(each.client) for each in files if not each.client.path.exists()))
    if not missing:
        return ""
    return f"{', '.join(missing)}: to add a skill, an agent and hooks, run `palaver install skills hooks`."


def _is_possible(client: Client) -> bool:
    """Return whether the file of an extra exists, or the agent that would read it is installed."""
    return client.path.exists() or find_client(client.name.partition("-")[0]).is_installed


def program_title(client: Client) -> str:
    """Return the name of the program: `Codex` for the title `Codex hooks`."""
    return client.title.partition(",")[0].removesuffix(" hooks")


def _of_file(file: CompanionFile) -> Extra:
    return Extra(file.client, partial(plan_file, file), partial(plan_file_removal, file), file.text)
