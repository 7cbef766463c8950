"""Palaver's hooks in the configuration files of Codex and Gemini CLI. docs/plugin.md lists the tested versions.

Both agents list groups of hooks below the name of an event. Palaver adds one group per event, and removes only groups
in which all hooks are its own.
"""

import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast

from msgspec import Struct

from ...core.errors import ClientConfigUnusable, InvalidInput
from ...core.hooks import CLAUDE_CODE, CODEX, GEMINI, HOOKS, Hook, switch_of
from . import config_format
from .client_setup import ConfigChange, backup_of, read_config
from .client_table import Client, ServerEntry, find_client
from .companion_files import has_hook_file
from .config_format import UnusableText, as_table, problem_of

BACKUP_SUFFIX: Final = "-hooks"
"""Suffix of the backup made before hooks are added. The backup made before the server entry is added has no such
suffix."""
_END: Final = "2>/dev/null || true"
_OWN: Final = re.compile(rf" hooks run (?:{'|'.join(HOOKS)}) {re.escape(_END)}\Z")
"""Pattern for the end of a hook's command line that Palaver wrote. The path of the program before it can vary."""
_SECTION: Final = "hooks"
_CLAUDE_SETTINGS: Final = Client(
    "claude-plugin", "Claude Code", "~/.claude", "settings.json", variable="CLAUDE_CONFIG_DIR"
)


class HookClient(Struct, frozen=True):
    """Coding agent with hooks.

    Attributes:
        agent: Name of the agent in the table of hooks.
        client: Location of the file with the hooks.
        second: One second in the unit in which the file states the maximum duration of a hook.
    """

    agent: str
    client: Client
    second: int

    @property
    def events(self) -> dict[str, str]:
        """Names of the supported events in the agent's configuration, by the argument of `palaver hooks run`."""
        return {name: hook.names[self.agent] for name, hook in HOOKS.items() if self.agent in hook.names}


HOOK_CLIENTS: Final = (
    HookClient(CODEX, find_client("codex").beside("hooks.json", "hooks", " hooks"), second=1),
    HookClient(GEMINI, find_client("gemini").beside("settings.json", "hooks", " hooks"), second=1_000),
)


def plan_hooks(hooks: HookClient, server: ServerEntry, chosen: Collection[str]) -> ConfigChange:
    """Plan to add the hooks of the chosen events, and to remove the hooks of other events. Nothing is written.

    `server` names the program and its environment.

    Raises:
        ClientConfigUnusable: The file cannot be read, or cannot be changed without the loss of other content.
        InvalidInput: The agent has none of the chosen events.
    """
    groups = _groups(hooks, server, chosen)
    if not groups:
        raise InvalidInput(f"{hooks.client.title}: all hooks are off", hint="Run `palaver hooks on` first.")
    path = hooks.client.path
    before = read_config(path)
    try:
        text = (before or b"").decode()
        lists = _lists(text, groups)
        is_new = not any(map(_own_groups, lists.values()))
        after = _with_groups(text, groups, hooks.events.values())
        expected = {name: _others(lists.get(name, [])) for name in {*lists, *groups}}
        expected_lists = {
            name: [*others, *([groups[name]] if name in groups else [])] for name, others in expected.items()
        }
        _check(text, after, expected_lists)
    except ValueError as error:
        raise ClientConfigUnusable(path, problem_of(error)) from None
    if after == text:
        return ConfigChange(hooks.client, path, "keep", before, before, BACKUP_SUFFIX)
    return ConfigChange(hooks.client, path, "add" if is_new else "update", before, after.encode(), BACKUP_SUFFIX)


def plan_hooks_removal(hooks: HookClient) -> ConfigChange:
    """Plan to remove the hooks. Nothing is written.

    If the file was not changed since the hooks were added, its previous bytes are restored. A file that Palaver created
    is deleted.

    Raises:
        ClientConfigUnusable: The file cannot be read, or cannot be changed without the loss of other content.
    """
    path = hooks.client.path
    before = read_config(path)
    try:
        text = (before or b"").decode()
        lists = _lists(text)
        own = {name: own_groups[0] for name, groups in lists.items() if (own_groups := _own_groups(groups))}
        if before is None or not own:
            return ConfigChange(hooks.client, path, "absent", before, before, BACKUP_SUFFIX)
        backup = read_config(backup_of(path, BACKUP_SUFFIX))
        after = _restored(backup, own, text)
        if after is None:
            after = _with_groups(text, {}, own)
            _check(text, after, {name: _others(groups) for name, groups in lists.items()})
            left = None if after.strip() == "{}" and not _is_previous(backup) else after.encode()
            return ConfigChange(hooks.client, path, "remove", before, left, BACKUP_SUFFIX)
    except ValueError as error:
        raise ClientConfigUnusable(path, problem_of(error)) from None
    return ConfigChange(hooks.client, path, "remove", before, backup, BACKUP_SUFFIX)


def hooked_agents() -> list[str]:
    """Return the names of the agents in which the hooks are installed. Agents with unreadable files are omitted."""
    installed = ["Claude Code"] if has_claude_plugin() else []
    for hooks in HOOK_CLIENTS:
        with suppress(ClientConfigUnusable):
            if plan_hooks_removal(hooks).is_needed:
                installed.append(hooks.client.title.removesuffix(" hooks"))
    with suppress(ClientConfigUnusable):
        if has_hook_file():
            installed.append("OpenCode")
    return installed


def hooks_text(hooks: HookClient, server: ServerEntry, chosen: Collection[str]) -> str:
    """Return the content of a configuration file that contains only the hooks."""
    return _with_groups("", _groups(hooks, server, chosen), ())


def has_claude_plugin() -> bool:
    """Return whether Claude Code's user settings enable the plugin. Project settings are not read."""
    try:
        text = (read_config(_CLAUDE_SETTINGS.path) or b"").decode()
        enabled = as_table(config_format.read(text).get("enabledPlugins", {}), "enabledPlugins")
    except (ValueError, ClientConfigUnusable):
        return False
    return any(value and name.startswith("palaver@") for name, value in enabled.items())


def _groups(hooks: HookClient, server: ServerEntry, chosen: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the group of hooks for each chosen event. The keys are the agent's names of the events."""
    setting = "".join(f"{name}={shlex.quote(value)} " for name, value in server.env.items())
    program = shlex.join(server.program)
    return {
        HOOKS[name].names[hooks.agent]: _group(
            hooks.agent, HOOKS[name], f"{setting}{program} hooks run {name} {_END}", hooks.second
        )
        for name in hooks.events
        if switch_of(name) in chosen
    }


def plugin_hooks() -> dict[str, Any]:
    """Return the content of agents/hooks/hooks.json, the hooks of the plugin for Claude Code."""
    script = 'sh "${CLAUDE_PLUGIN_ROOT}/hooks/palaver-hook.sh"'
    return {
        "description": "Adds what past sessions of the project learned, and archives each session when it ends",
        "hooks": {
            hook.names[CLAUDE_CODE]: [_group(CLAUDE_CODE, hook, f"{script} {name}")]
            for name, hook in HOOKS.items()
            if CLAUDE_CODE in hook.names
        },
    }


def _group(agent: str, hook: Hook, command: str, second: int = 1) -> dict[str, Any]:
    """Return the group of one hook as the agents read it."""
    matcher = {"matcher": hook.tools[agent]} if agent in hook.tools else {}
    return {**matcher, "hooks": [{"type": "command", "command": command, "timeout": hook.seconds * second}]}


def _lists(text: str, needed: Collection[str] = ()) -> dict[str, list[Any]]:
    """Return the groups of hooks in a file by event, without the other settings of the section.

    Raises:
        UnusableText: The section is not a table, or the value of a needed event is not a list.
    """
    section = as_table(config_format.read(text).get(_SECTION, {}), _SECTION)
    if odd := [name for name in needed if not isinstance(section.get(name, []), list)]:
        raise UnusableText(f"`{_SECTION}.{odd[0]}` is not a list")
    return {name: cast("list[object]", value) for name, value in section.items() if isinstance(value, list)}


def _with_groups(text: str, groups: Mapping[str, Any], events: Collection[str]) -> str:
    """Return the text of a file with these groups, and without Palaver's other groups for these events."""
    for name in dict.fromkeys([*groups, *events]):
        current = _lists(text).get(name)
        changed = [*_others(current or []), *([groups[name]] if name in groups else [])]
        if changed == (current or []):
            continue
        text = (
            config_format.put(text, (_SECTION, name), changed)
            if changed
            else config_format.drop(text, (_SECTION, name))
        )
    if not groups and config_format.read(text).get(_SECTION) == {}:
        text = config_format.drop(text, (_SECTION,))
    return text


def _is_previous(backup: bytes | None) -> bool:
    """Return whether a backup exists and contains no hooks of Palaver, so that Palaver did not create the file.

    If Palaver created the file, the backup was made by a later update, so it contains Palaver's hooks.
    """
    try:
        return backup is not None and not any(map(_own_groups, _lists(backup.decode()).values()))
    except ValueError:
        return True


def _restored(backup: bytes | None, own: Mapping[str, Any], text: str) -> str | None:
    """Return the backup's text if the hooks are the only difference between the backup and the file, or else None."""
    try:
        previous = (backup or b"").decode()
        is_clean = not any(map(_own_groups, _lists(previous).values()))
        return previous if is_clean and _with_groups(previous, own, ()) == text else None
    except ValueError:
        return None


def _check(text: str, after: str, changed: Mapping[str, Sequence[Any]]) -> None:
    """Raise `UnusableText` unless the new text parses to the old values with the changed groups."""
    old, new = config_format.read(text), config_format.read(after)
    section = {**old.pop(_SECTION, {}), **changed}
    expected = {name: value for name, value in section.items() if value != []}
    lists = {name: value for name, value in as_table(new.pop(_SECTION, {}), _SECTION).items() if value != []}
    if (old, expected) != (new, lists):
        raise UnusableText("an automatic change would alter other settings")


def _own_groups(groups: Sequence[Any]) -> list[Any]:
    return [group for group in groups if _is_own(group)]


def _others(groups: Sequence[Any]) -> list[Any]:
    return [group for group in groups if not _is_own(group)]


def _is_own(group: object) -> bool:
    """Return whether a group contains only hooks of Palaver."""
    listed = cast("dict[str, Any]", group).get("hooks") if isinstance(group, dict) else None
    hooks = cast("list[object]", listed) if isinstance(listed, list) else []
    commands = [cast("dict[str, Any]", hook).get("command") if isinstance(hook, dict) else None for hook in hooks]
    return bool(commands) and all(isinstance(command, str) and _OWN.search(command) for command in commands)
