"""Background service of systemd or launchd that runs `palaver watch`."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import which
from typing import Final

from msgspec import Struct

from palaver.core.durability import replacing
from palaver.core.errors import PalaverError
from palaver.core.home import Home
from palaver.templates.units import NAME, launchd_agent, systemd_unit

from .program import program_words

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
