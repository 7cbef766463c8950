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

_CARRIED: Final = (
    "PALAVER_HOME CLAUDE_CONFIG_DIR CODEX_HOME COPILOT_HOME GEMINI_CLI_HOME KIMI_CODE_HOME KIMI_SHARE_DIR OPENCODE_DB "
    "PI_CODING_AGENT_DIR XDG_CONFIG_HOME XDG_DATA_HOME"
).split()
"""Environment variables for the folders of Palaver and the agents. A service does not inherit these variables."""


class _Service(Struct, frozen=True):
    """Service file of systemd or launchd, with the commands that start and stop the service."""

    path: Path
    text: str
    start: tuple[tuple[str, ...], ...]
    stop: tuple[tuple[str, ...], ...]
    forget: tuple[tuple[str, ...], ...] = ()
    """Commands to run after the service file is removed."""


@click.group()
def setup() -> None:
    """Run Palaver as a background service."""


@setup.command("service", short_help="Install `palaver watch` as a background service.")
@click.option("--print", "only_print", is_flag=True, help="Print the service file without installing it.")
@click.option("--remove", is_flag=True, help="Stop the service and remove the service file.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@as_json
def service(*, only_print: bool, remove: bool, yes: bool, as_json: bool) -> None:
    """Install `palaver watch` as a background service of this user.

    Shows the systemd unit or launchd agent and asks for confirmation. Without a terminal, --yes is required. Removing
    the service does not delete the archive.
    """
    if remove and only_print:
        raise click.UsageError("--print and --remove cannot be combined.")
    known = _service()
    if only_print and not as_json:
        click.echo(known.text, nl=False)
    elif only_print:
        print_json({"path": str(known.path), "text": known.text})
    elif remove:
        _remove(known, as_json=as_json)
    else:
        if not as_json:
            click.echo(f"{known.path}:\n\n{known.text}")
        if yes or _agreed():
            _install(known, as_json=as_json)
        elif as_json:
            print_json({"path": str(known.path), "text": known.text, "started": False})
        else:
            click.echo("Service not installed. Run `palaver setup service --yes` to install it without confirmation.")


def _agreed() -> bool:
    """Return whether the user confirms at a terminal. Without a terminal, return False."""
    return sys.stdin.isatty() and click.confirm("Write this file and start the service?", default=True, err=True)


def _install(known: _Service, *, as_json: bool) -> None:
    known.path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(known.path) as file:
        file.write(known.text.encode())
    problem = _run(known.start)
    if problem:
        commands = " && ".join(map(shlex.join, known.start))
        raise PalaverError(f"{known.path} was written, but not started: {problem}", hint=f"Start it with: {commands}")
    if as_json:
        print_json({"path": str(known.path), "started": True})
    else:
        click.echo("Service started. It also starts when you log in. Run `palaver status` to see its state.")


def _remove(known: _Service, *, as_json: bool) -> None:
    there, problem = known.path.exists(), ""
    if there:
        problem = _run(known.stop)
        known.path.unlink()
        _run(known.forget)
    if as_json:
        print_json({"path": str(known.path), "removed": there})
    else:
        removed = "Removed {}, but could not stop the service: {}" if problem else "Stopped and removed {}."
        click.echo((removed if there else "No service installed: {}").format(known.path, problem))


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
    environment = {name: os.environ[name] for name in _CARRIED if os.environ.get(name)}
    Home.find()  # raises if PALAVER_HOME is invalid, before anything is written
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
        forget=(reload,),
    )
