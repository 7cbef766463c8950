"""`palaver setup`: run Palaver as a background service."""

import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from palaver.core.durability import replacing
from palaver.core.errors import PalaverError
from palaver.core.home import Home
from palaver.templates.units import NAME, launchd_agent, systemd_unit

from .options import as_json
from .output import print_json
from .program import program_words

_FORWARDED: Final = (
    "PALAVER_HOME CLAUDE_CONFIG_DIR CODEX_HOME COPILOT_HOME GEMINI_CLI_HOME KIMI_CODE_HOME KIMI_SHARE_DIR OPENCODE_DB "
    "PI_CODING_AGENT_DIR XDG_CONFIG_HOME XDG_DATA_HOME"
).split()
"""Environment variables that the service file sets, because a service does not inherit them."""


class _Service(Struct, frozen=True):
    """Service file of systemd or launchd, with the commands that start and stop the service."""

    path: Path
    text: str
    start: tuple[tuple[str, ...], ...]
    stop: tuple[tuple[str, ...], ...]
    after_removal: tuple[tuple[str, ...], ...] = ()
    """Commands to run after the service file is removed."""


@click.group()
def setup() -> None:
    """Run Palaver as a background service."""


@setup.command("service", short_help="Install `palaver watch` as a background service.")
@click.option("--print", "only_print", is_flag=True, help="Print the service file without installing it.")
@click.option("--remove", is_flag=True, help="Stop the service and remove the service file.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@as_json
def service_command(*, only_print: bool, remove: bool, yes: bool, as_json: bool) -> None:
    """Install `palaver watch` as a background service of this user.

    Shows the systemd unit or launchd agent and asks for confirmation. Without a terminal, --yes is required. Removing
    the service does not delete the archive.
    """
    if remove and only_print:
        raise click.UsageError("--print and --remove cannot be combined.")
    service = _service()
    if only_print and not as_json:
        click.echo(service.text, nl=False)
    elif only_print:
        print_json({"path": str(service.path), "text": service.text})
    elif remove:
        _remove(service, as_json=as_json)
    else:
        if not as_json:
            click.echo(f"{service.path}:\n\n{service.text}")
        if yes or _is_confirmed():
            _install(service, as_json=as_json)
        elif as_json:
            print_json({"path": str(service.path), "text": service.text, "started": False})
        else:
            click.echo(
                "The service was not installed. To install it without confirmation, run `palaver setup service --yes`."
            )


def _is_confirmed() -> bool:
    """Return whether the user confirms at a terminal. Without a terminal, return False."""
    return sys.stdin.isatty() and click.confirm("Write this file and start the service?", default=True, err=True)


def _install(service: _Service, *, as_json: bool) -> None:
    service.path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(service.path) as file:
        file.write(service.text.encode())
    problem = _run(service.start)
    if problem:
        commands = " && ".join(map(shlex.join, service.start))
        raise PalaverError(
            f"{service.path} was written, but the service did not start: {problem}", hint=f"Start it with: {commands}"
        )
    if as_json:
        print_json({"path": str(service.path), "started": True})
    else:
        click.echo("Service started. It also starts when you log in. Run `palaver status` to see its state.")


def _remove(service: _Service, *, as_json: bool) -> None:
    existed, problem = service.path.exists(), ""
    if existed:
        problem = _run(service.stop)
        service.path.unlink()
        _run(service.after_removal)
    if as_json:
        print_json({"path": str(service.path), "removed": existed})
    else:
        removed = "Removed {}, but could not stop the service: {}" if problem else "Stopped and removed {}."
        click.echo((removed if existed else "No service installed: {}").format(service.path, problem))


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


def _service() -> _Service:
    command = [*program_words(), "watch"]
    environment = {name: os.environ[name] for name in _FORWARDED if os.environ.get(name)}
    Home.find()  # This raises an error if PALAVER_HOME is invalid, before anything is written.
    if sys.platform == "darwin":
        path = Path.home() / "Library" / "LaunchAgents" / f"{NAME}.plist"
        domain = f"gui/{os.getuid()}"
        stop = (("launchctl", "bootout", f"{domain}/{NAME}"),)
        start = (("launchctl", "bootstrap", domain, str(path)),)
        return _Service(path, launchd_agent(command, environment), start, stop)
    unit = f"{NAME}.service"
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    reload = ("systemctl", "--user", "daemon-reload")
    return _Service(
        settings / "systemd" / "user" / unit,
        systemd_unit(command, environment),
        start=(reload, ("systemctl", "--user", "enable", unit), ("systemctl", "--user", "restart", unit)),
        stop=(("systemctl", "--user", "disable", "--now", unit),),
        after_removal=(reload,),
    )
