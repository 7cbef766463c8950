"""`palaver install`: connect MCP clients, start the background service, and print or add extras.

- The background service of systemd or launchd runs `palaver watch`.
- Extras are added only by name: hooks, and the skill, the agent and the slash commands.
- `--print` prints entries, hooks and files, to copy by hand.
- A hint names the plugin for Claude Code.
"""

import os
import re
import secrets
import shlex
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from shutil import which
from typing import Any, Final, Literal, NamedTuple

import click
from msgspec import Struct

from .. import agents
from ..agents.clients.client_setup import ConfigChange, apply, plan, plan_removal, same_start, snippet
from ..agents.clients.client_table import CLIENTS, Client, ServerEntry, docker_server, find_client, own_server
from ..agents.clients.companion_files import SKILL_FILES, CompanionFile, hook_file, plan_file, plan_file_removal
from ..agents.clients.hook_setup import HOOK_CLIENTS, has_claude_plugin, hooks_text, plan_hooks, plan_hooks_removal
from ..agents.toolset import find_toolset
from ..archiver.redaction.redactor import Redactor
from ..core.errors import ChangedMeanwhile, InvalidInput, PalaverError
from ..core.home import Home
from ..core.runtime import replacing
from ..observe.archive import Archive
from ..templates.environment import NAME, launchd_agent, systemd_unit
from ..templates.quote import clean, line
from .demo import is_demo
from .output import as_json, failure_of, print_json
from .program import command_of, program_words


def marketplace() -> Path:
    """Return the plugin marketplace for Claude Code: the folder of the installed package, or the checkout."""
    return Path(agents.__file__).parents[1]


def plugin_hint(home: Home) -> str:
    """Return how to install the plugin. If it is installed, return how to remove the server entry that duplicates it.

    The text is empty if PALAVER_HOME is set, because Claude Code would have to be started with the same variable.
    """
    if os.environ.get("PALAVER_HOME"):
        return ""
    remove = f"{command_of(home)} install claude-code --remove"
    if has_claude_plugin():
        return f"Claude Code: the plugin lists the tools too. Remove this entry: {remove}"
    add = f"claude plugin marketplace add {shlex.quote(str(marketplace()))}"
    commands = f"{add} && claude plugin install palaver@palaver && {remove}"
    return f"The plugin for Claude Code adds an agent and hooks. To use it instead of this entry:\n  {commands}"


_FORWARDED: Final = (
    "PALAVER_HOME CLAUDE_CONFIG_DIR CODEX_HOME COPILOT_HOME GEMINI_CLI_HOME KIMI_CODE_HOME KIMI_SHARE_DIR OPENCODE_DB "
    "PI_CODING_AGENT_DIR XDG_CONFIG_HOME XDG_DATA_HOME"
).split()
"""Environment variables that the service file sets, because a service does not inherit them."""
_NO_BUS: Final = re.compile(r"\bto (?:user scope )?bus\b|\bDBUS_SESSION_BUS_ADDRESS\b")
"""Pattern for errors of systemctl where no user bus exists, as in containers. Repeating its commands does not help."""

_USER_BUS: Final = "a user bus of systemd"


class Service(Struct, frozen=True):
    """Service file of systemd or launchd, with the commands that start and stop the service."""

    path: Path
    text: str
    start: tuple[tuple[str, ...], ...]
    stop: tuple[tuple[str, ...], ...]
    after_removal: tuple[tuple[str, ...], ...] = ()
    """Commands to run after the service file is removed."""
    check: tuple[tuple[str, ...], ...] = ()
    """Commands that change nothing, and fail without a user bus."""

    @classmethod
    def find(cls) -> "Service":
        """Return the service for this system: a launchd agent on macOS, or else a systemd unit.

        Raises:
            ConfigInvalid: PALAVER_HOME is invalid.
        """
        command = [*program_words(), "watch"]
        environment = {name: os.environ[name] for name in _FORWARDED if os.environ.get(name)}
        Home.find()
        if sys.platform == "darwin":
            path = Path.home() / "Library" / "LaunchAgents" / f"{NAME}.plist"
            domain = f"gui/{os.getuid()}"
            stop = (("launchctl", "bootout", f"{domain}/{NAME}"),)
            start = (("launchctl", "bootstrap", domain, str(path)),)
            return cls(path, launchd_agent(command, environment), start, stop)
        unit = f"{NAME}.service"
        settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        reload = ("systemctl", "--user", "daemon-reload")
        return cls(
            settings / "systemd" / "user" / unit,
            systemd_unit(command, environment),
            start=(reload, ("systemctl", "--user", "enable", unit), ("systemctl", "--user", "restart", unit)),
            stop=(("systemctl", "--user", "disable", "--now", unit),),
            after_removal=(reload,),
            check=(("systemctl", "--user", "show-environment"),),
        )

    def missing(self) -> str:
        """Return what this system lacks to start the service, such as `systemctl`, or an empty text."""
        program = self.start[0][0]
        if which(program) is None:
            return program
        return _USER_BUS if _NO_BUS.search(_run(self.check)) else ""

    @property
    def is_current(self) -> bool:
        """True if the service file is installed with this text."""
        return self.path.is_file() and self.path.read_bytes() == self.text.encode()

    def install(self) -> None:
        """Write the service file and start the service.

        Raises:
            PalaverError: The service did not start. The file was written, unless the system has no user bus.
        """
        is_new = not self.path.exists()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as file:
            file.write(self.text.encode())
        problem = _run(self.start)
        if _NO_BUS.search(problem):
            if is_new:  # else `is_current` would report a service that never starts
                self.path.unlink()
            raise PalaverError(f"The service needs {_USER_BUS}", hint="Run `palaver watch` instead.")
        if problem:
            commands = " && ".join(map(shlex.join, self.start))
            raise PalaverError(f"The service did not start: {problem}", hint=f"Start it with: {commands}")

    def remove(self) -> str:
        """Stop the service and delete its file. Return why it could not be stopped, or an empty text."""
        problem = _run(self.stop)
        self.path.unlink()
        _run(self.after_removal)
        return problem


def _run(commands: Sequence[tuple[str, ...]]) -> str:
    """Run the commands and return an error message, or an empty text on success."""
    for command in commands:
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        except OSError as error:
            return f"{command[0]}: {error.strerror}"
        if done.returncode:
            return done.stderr.strip() or f"{shlex.join(command)} exited with {done.returncode}"
    return ""


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
    server, chosen = own_server(program_words(), home), Archive(home).config.hooks
    hooks = [
        Extra(
            hooked.client,
            partial(plan_hooks, hooked, server, chosen),
            partial(plan_hooks_removal, hooked),
            partial(hooks_text, hooked, server, chosen),
        )
        for hooked in HOOK_CLIENTS
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
        extra
        for extra in all_extras(home)
        if extra.client.name in names
        or ((every or extra.client.name.rpartition("-")[2] in names) and _is_possible(extra.client))
    ]


def extras_hint(connected: Collection[str]) -> str:
    """Return how to add the skill, the agent and the hooks, or an empty text if the connected clients have them."""
    files = [file for file in SKILL_FILES if file.client.name.partition("-")[0] in connected]
    missing = list(dict.fromkeys(program_title(file.client) for file in files if not file.client.path.exists()))
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


def print_texts(
    names: Sequence[str], home: Home, server: ServerEntry, container: ServerEntry, *, as_json: bool
) -> None:
    """Print the texts of the named clients, hooks and files, and the service file if it is named."""
    texts = list[_Text]()
    for name in names:
        match name:
            case "service" if len(names) == 1 or as_json:
                service = Service.find()
                texts.append(_Text(name, str(service.path), service.text))
            case "service":
                continue
            case group if group in GROUPS and any(other_name.endswith(f"-{group}") for other_name in names):
                continue
            case _ if name in EXTRA_NAMES:
                texts += [
                    _of(extra.client, extra.text(), extra.client.name, extra.client.title)
                    for extra in extras([name], home)
                ]
            case "generic":
                texts.append(_Text(name, "", snippet(find_client("cursor"), server)))
            case "docker":
                texts += [_of(client, snippet(client, container), f"docker, {client.name}") for client in CLIENTS]
            case _:
                client = find_client(name)
                texts.append(_of(client, snippet(client, server), name))
    if as_json:
        print_json({"texts": [{"client": text.client, "path": text.path, "text": text.text} for text in texts]})
    elif len(texts) == 1:
        click.echo(texts[0].text.encode(), nl=False)  # to copy, so no line is wrapped
    else:
        heads = [": ".join(filter(None, (text.title or text.client, line(text.path)))) for text in texts]
        click.echo(
            "\n".join(f"{head}\n{text.text}" for head, text in zip(heads, texts, strict=True)).encode(), nl=False
        )


class _Text(NamedTuple):
    """Text to copy into a file of a client. If `title` is set, it is printed instead of `client`."""

    client: str
    path: str
    text: str
    title: str = ""


def _of(client: Client, text: str, name: str, title: str = "") -> _Text:
    return _Text(name, str(client.path), text, title)


_ROW: Final = 160
"""Maximum characters of a row of a diff that is shown completely."""
_SERVICE: Final = "service"
_TEXTS: Final = ("generic", "docker")
"""Arguments for which the command prints text to copy, instead of changing a file."""
_NAMES: Final = (*(client.name for client in CLIENTS), *_TEXTS, _SERVICE, *EXTRA_NAMES)
_NONE_FOUND: Final = "No installed client found"
_NAME_ONE: Final = f"To connect one, run `palaver install CLIENT`: {', '.join(client.name for client in CLIENTS)}."
_PLANNED: Final = {
    "add": "add to {}",
    "update": "update {}",
    "keep": "already connected in {}",
    "remove": "remove from {}",
    "absent": "not connected in {}",
    "paste": "Palaver does not edit YAML. Add this to {}:",
}
_PLANNED_FILE: Final = {
    "add": "write {}",
    "update": "update {}",
    "keep": "already written to {}",
    "remove": "delete {}",
    "absent": "not written to {}",
}
"""Texts for files that Palaver writes as a whole. `_PLANNED` contains the texts for other configuration files."""
_DONE: Final = {"add": "added", "update": "updated", "remove": "removed"}

_ATTEMPTS: Final = 5
"""Maximum number of attempts to change a file that other programs change at the same time."""
_CHOICE: Final = click.Choice(["y", "c", "n"], case_sensitive=False)

ServiceAction = Literal["add", "keep", "remove", "absent", "unavailable"]


class _Step(Struct):
    """Change of one client, or the error that prevents it."""

    client: Client
    plan: Callable[[], ConfigChange]
    change: ConfigChange | None = None
    error: PalaverError | None = None
    done: bool = False

    @property
    def is_needed(self) -> bool:
        return self.change is not None and self.change.is_needed


class _ServiceStep(Struct):
    """Change of the background service, or the error that prevents it."""

    service: Service
    action: ServiceAction
    error: PalaverError | None = None
    note: str = ""
    done: bool = False

    @property
    def is_needed(self) -> bool:
        return self.action in {"add", "remove"}


@click.command()
@click.argument("names", nargs=-1, metavar="[CLIENT]...")
@click.option("--all", "every", is_flag=True, help="All installed clients (the default). With --print: all clients.")
@click.option("--remove", is_flag=True, help="Remove what this command wrote.")
@click.option("--print", "only_print", is_flag=True, help="Print the entries without writing them.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--no-service", is_flag=True, help="Leave the background service as it is.")
@click.option("--docker", is_flag=True, help="Run the server in a container. See docs/clients.md.")
@click.option("--toolset", default="", metavar="NAME[,NAME...]", help="Toolsets to serve. See `palaver toolsets`.")
@as_json
@click.pass_context
def install(
    context: click.Context,
    names: Sequence[str],
    *,
    every: bool,
    remove: bool,
    only_print: bool,
    yes: bool,
    no_service: bool,
    docker: bool,
    toolset: str,
    as_json: bool,
) -> None:
    """Connect coding clients to Palaver's MCP server, and archive in the background.

    CLIENT is claude-code, claude (Claude Desktop), cursor, codex, gemini, copilot, kimi, kimi-code, opencode, vscode,
    zed, windsurf, goose, kiro or droid. `service` is the background service. `skills` adds a skill, an agent and slash
    commands to Codex, Gemini CLI and OpenCode, and `hooks` adds hooks to them (docs/plugin.md). `generic` and `docker`
    print settings for other clients. Without CLIENT, all installed clients and the service are set up.

    Shows each change and asks once. Each changed file has a backup beside it. Without a terminal, --yes is required.
    """
    if every and names:
        raise click.UsageError("--all and CLIENT cannot be combined.")
    if remove and only_print:
        raise click.UsageError("--print and --remove cannot be combined.")
    for name in names:
        if name not in _NAMES:
            raise InvalidInput(f"Unknown client: {name}", hint=f"Use one of: {', '.join(_NAMES)}.")
    home = Home.find()
    if not (docker or remove):
        _refuse_temporary()
    server = _server(home, toolset, docker=docker)
    others = (*_TEXTS, _SERVICE, *EXTRA_NAMES)
    clients = [find_client(name) for name in dict.fromkeys(names) if name not in others]
    if only_print or (names and set(names) <= set(_TEXTS)):
        connected = names or (_NAMES if every else _installed())
        print_texts(connected, home, server, docker_server(home, toolset), as_json=as_json)
        return
    if not names:
        clients = [client for client in CLIENTS if client.is_installed]
    steps = [_planned(client, _change(client, None if remove else server)) for client in clients]
    chosen = extras(names, home, every=remove and not names)
    steps += [_planned(extra.client, extra.remove if remove else extra.add) for extra in chosen]
    wants_service = _SERVICE in names or not (names or no_service or is_demo(home))
    service = _service_step(named=_SERVICE in names, remove=remove) if wants_service else None
    if len(names) == 1 and steps and steps[0].error:
        raise steps[0].error
    if not as_json:
        _show(steps, service, full=_SERVICE in names)
    _carry_out(steps, service, _answer(steps, service, remove=remove, yes=yes))
    if as_json:
        print_json({"clients": [_step_fields(step) for step in steps], "service": _service_fields(service)})
    else:
        _report(steps, service, context.params)
        if not (remove or docker):
            _show_hints(steps, home)
    if _is_failed(steps, service):
        context.exit(1)


def _server(home: Home, toolset: str, *, docker: bool) -> ServerEntry:
    """Return the entry to write.

    Raises:
        InvalidInput: A toolset is unknown.
    """
    for name in filter(None, toolset.split(",")):
        find_toolset(name.strip())
    return docker_server(home, toolset) if docker else own_server(program_words(), home, toolset)


def _refuse_temporary() -> None:
    """Raise `PalaverError` if this program runs in a temporary environment of uvx, which uv can delete."""
    if any(part.startswith("archive-v") for part in Path(sys.prefix).parts):  # uvx runs programs in archive-v0.
        hint = "Run `uv tool install palaver-archive`, then `palaver install`."
        raise PalaverError("Palaver runs in a temporary environment of uvx, which uv deletes", hint=hint)


def _installed() -> list[str]:
    """Return the names of the installed clients, and `hooks`. Raise `InvalidInput` if no client is installed."""
    names = [client.name for client in CLIENTS if client.is_installed]
    if not names:
        raise InvalidInput(_NONE_FOUND, hint=_NAME_ONE)
    return [*names, "hooks"]


def _change(client: Client, server: ServerEntry | None) -> Callable[[], ConfigChange]:
    """Return the function that plans the change of a client's file. Without a server, it removes the entry."""
    return partial(plan_removal, client) if server is None else partial(plan, client, server)


def _planned(client: Client, make: Callable[[], ConfigChange]) -> _Step:
    try:
        return _Step(client, make, make())
    except PalaverError as error:
        return _Step(client, make, error=error)


def _service_step(*, named: bool, remove: bool) -> _ServiceStep:
    """Return the change of the service. If the user named the service, install it even if its file is current."""
    service = Service.find()
    if remove:
        return _ServiceStep(service, "remove" if service.path.exists() else "absent")
    if service.is_current and not named:
        return _ServiceStep(service, "keep")
    missing = "" if named else service.missing()
    return _ServiceStep(service, "unavailable" if missing else "add", note=missing)


def _show(steps: Sequence[_Step], service: _ServiceStep | None, *, full: bool) -> None:
    """Print all planned changes."""
    if not steps and service is None:
        click.echo(f"{_NONE_FOUND}. {_NAME_ONE}")
    for step in steps:
        if step.change is None:
            click.echo(f"{step.client.title}: not changed. {line(step.error.full_message) if step.error else ''}")
            continue
        planned = (_PLANNED_FILE if step.change.folders else _PLANNED)[step.change.action]
        click.echo(f"{step.client.title}: {planned.format(line(str(step.change.path)))}")
        for row in _diff(step.change):
            click.echo(f"  {row}")
        if step.change.action == "paste":
            click.echo(f"\n{step.change.snippet}")
    if service is None:
        return
    path = line(str(service.service.path))
    match service.action:
        case "add":
            click.echo(f"Background service: add {path}, which runs `palaver watch` at login")
            if full:
                click.echo(f"\n{service.service.text}")
        case "keep":
            click.echo(f"Background service: already installed in {path}")
        case "remove":
            click.echo(f"Background service: stop it and remove {path}")
        case "absent":
            click.echo(f"No service installed: {path}")
        case "unavailable":
            click.echo(f"Background service: not available without {service.note}. Run `palaver watch` instead.")


def _diff(change: ConfigChange) -> list[str]:
    """Return the rows of a diff. Secrets are redacted, because a changed line can also contain other settings."""
    if not change.is_needed:
        return []
    if change.folders and change.action != "update":  # a whole file
        content = (change.before if change.after is None else change.after) or b""
        sign = "-" if change.after is None else "+"
        return [f"{sign} {len(content.splitlines())} lines"]
    redactor = Redactor(secrets.token_bytes(32))
    return [redactor.redact(clean(row[: 10 * _ROW])).text for row in _changed_parts(change.diff)]


def _changed_parts(diff: Sequence[str]) -> Sequence[str]:
    """Return the rows of a diff. If one long row replaces another one, only the changed part is kept.

    A file without line breaks is one row, and the entry to approve is in its middle.
    """
    if len(diff) != 2 or max(map(len, diff)) <= _ROW:
        return diff
    old, new = (row[1:] for row in diff)
    start = same_start(old, new)
    end = same_start(old[start:][::-1], new[start:][::-1])
    parts = (("-", old[start : len(old) - end]), ("+", new[start : len(new) - end]))
    return [f"{sign}…{part}…" for sign, part in parts if part]


def _answer(steps: Sequence[_Step], service: _ServiceStep | None, *, remove: bool, yes: bool) -> tuple[bool, bool]:
    """Return two values: whether to change the clients, and whether to change the service.

    The user is asked once, and only at a terminal. With `yes`, the user is not asked.
    """
    files = sum(step.is_needed for step in steps)
    serves = service is not None and service.is_needed
    if yes or not (files or serves) or not sys.stdin.isatty():
        return yes, yes
    what = f"change {files} file{'s'[: files != 1]}" if files else ""
    act = ("stop" if remove else "start") + " the service"
    if not (files and serves):
        agreed = click.confirm(f"{(what or act).capitalize()}?", default=True, err=True)
        return agreed, agreed
    question = f"{what.capitalize()} and {act}? (y: yes, c: clients only, n: no)"
    typed = click.prompt(question, type=_CHOICE, default="y", show_choices=False, err=True)
    return typed != "n", typed == "y"


def _carry_out(steps: Sequence[_Step], service: _ServiceStep | None, agreed: tuple[bool, bool]) -> None:
    """Apply the confirmed changes. A failure does not prevent the other changes."""
    for step in steps if agreed[0] else ():
        if not step.is_needed or step.change is None:
            continue
        try:
            _apply(step, step.change)
        except PalaverError as error:
            step.error = error
    if service is None or not service.is_needed or not agreed[1]:
        return
    try:
        if service.action == "add":
            service.service.install()
        else:
            service.note = service.service.remove()
        service.done = True
    except PalaverError as error:
        service.error = error


def _apply(step: _Step, change: ConfigChange) -> None:
    """Apply the change of a step. If the file changed meanwhile, plan again: another process may have done the same.

    Raises:
        ChangedMeanwhile: Other programs changed the file in every attempt.
    """
    for attempt in range(_ATTEMPTS):
        try:
            apply(change)
        except ChangedMeanwhile:  # Running clients rewrite their file at any time.
            if attempt + 1 == _ATTEMPTS:
                raise
            change = step.change = step.plan()
        else:
            step.done = change.is_needed
            return


def _report(steps: Sequence[_Step], service: _ServiceStep | None, parameters: dict[str, Any]) -> None:
    """Print the result of each change, the backups, and whether changes were not confirmed."""
    last = {program_title(step.client): step for step in steps if step.done}
    for step in steps:
        if step.done and step.change is not None:
            program = program_title(step.client)
            restart = f" Restart {program} to apply it." if last[program] is step else ""
            click.echo(f"{step.client.title}: {_DONE[step.change.action]}.{restart}")
            if step.client.name == "codex-hooks" and step.change.action != "remove":
                click.echo("Codex runs a new hook only after you trust it: enter /hooks in Codex.")
        elif step.error and step.change is not None:
            click.echo(f"{step.client.title}: not changed. {line(step.error.full_message)}")
    for step in steps:
        if step.done and step.change is not None and step.change.keeps_backup:
            click.echo(f"Backup: {line(str(step.change.backup))}")
    if service is not None:
        path = line(str(service.service.path))
        if service.error:
            click.echo(f"palaver: {line(str(service.error))}\n{line(service.error.hint)}".rstrip(), err=True)
        elif service.done and service.action == "add":
            click.echo("Service started. It also starts when you log in. Run `palaver status` to see its state.")
        elif service.done:
            problem = f"Removed {path}, but could not stop the service: {line(service.note)}"
            click.echo(problem if service.note else f"Stopped and removed {path}.")
    if not _is_pending(steps, service):
        return
    if sys.stdin.isatty():
        did = any(step.done for step in steps) or (service is not None and service.done)
        click.echo("The rest was not changed." if did else "Nothing was changed.")
    else:
        words = ["palaver install", *parameters["names"], *(["--remove"] if parameters["remove"] else []), "--yes"]
        required = "Nothing was changed: without a terminal, --yes is required."
        click.echo(f"palaver: {required} Run `{' '.join(words)}`.", err=True)


def _show_hints(steps: Sequence[_Step], home: Home) -> None:
    """Print how to install the plugin for Claude Code, and how to add the skill and hooks to other clients."""
    if any(step.client.name == "claude-code" for step in steps) and (hint := plugin_hint(home)):
        click.echo(hint)
    if hint := extras_hint({step.client.name for step in steps}):
        click.echo(hint)


def _is_failed(steps: Sequence[_Step], service: _ServiceStep | None) -> bool:
    """Return whether a change failed, or could not be confirmed without a terminal."""
    failed = any(step.error for step in steps) or (service is not None and service.error is not None)
    return failed or (_is_pending(steps, service) and not sys.stdin.isatty())


def _is_pending(steps: Sequence[_Step], service: _ServiceStep | None) -> bool:
    """Return whether a needed change was not applied because it was not confirmed."""
    every: list[_Step | _ServiceStep] = [*steps, *([service] if service else [])]
    return any(step.is_needed and not (step.done or step.error) for step in every)


def _step_fields(step: _Step) -> dict[str, Any]:
    change = step.change
    return {
        "client": step.client.name,
        "path": str(step.client.path),
        "action": change.action if change else None,
        "diff": _diff(change) if change else [],
        "snippet": change.snippet if change and change.action == "paste" else "",
        "done": step.done,
        "backup": str(change.backup) if change and step.done and change.keeps_backup else None,
        "error": _error_fields(step.error),
    }


def _service_fields(step: _ServiceStep | None) -> dict[str, Any] | None:
    if step is None:
        return None
    return {
        "path": str(step.service.path),
        "action": step.action,
        "text": step.service.text,
        "done": step.done,
        "error": _error_fields(step.error),
    }


def _error_fields(error: PalaverError | None) -> dict[str, str] | None:
    if error is None:
        return None
    failure = failure_of(error)
    return {"kind": failure.kind, "message": line(failure.message), "hint": line(failure.hint)}
