"""Server entry: the command by which a client starts Palaver's MCP server."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from ...core.home import Home
from ..toolset import find_toolset
from .config_format import as_table

NAME: Final = "palaver"
"""Name of the server in every client's configuration."""
HOME_VARIABLE: Final = "PALAVER_HOME"
IMAGE: Final = "palaver-archive"
"""Name of the Docker image that the Dockerfile builds."""
_MOUNTED: Final = "/data"
"""Path of the Palaver home inside the container, as set in the Dockerfile."""


class ServerEntry(Struct, frozen=True):
    """Command, arguments and environment of the server."""

    command: str
    args: tuple[str, ...]
    env: dict[str, str]

    @property
    def program(self) -> list[str]:
        """Command and arguments that start Palaver, without the subcommand `mcp` and its options."""
        return [self.command, *self.args[: self.args.index("mcp")]]


class EntryShape(Struct, frozen=True):
    """Format of an MCP server's entry in a client's configuration: the names of its fields, and additional fields."""

    command: str = "command"
    joined: bool = False
    """True if the client expects the command and its arguments in one list."""
    env: str = "env"
    fixed: dict[str, Any] = {}
    """Fields that have the same value in every entry, such as `"type": "stdio"`."""
    initial: dict[str, Any] = {}
    """Fields that are written only into a new entry, so that the user's later changes are kept."""

    def fields(self, server: ServerEntry) -> dict[str, Any]:
        """Return the fields of a new entry."""
        return {**self._launch(server), **({self.env: server.env} if server.env else {}), **self.initial}

    def updated(self, entry: Mapping[str, Any], server: ServerEntry) -> dict[str, Any]:
        """Return a copy of `entry` that starts this server. All other fields and variables are kept.

        Raises:
            UnusableText: The environment of the entry is not a table.
        """
        known = as_table(entry.get(self.env) or {}, f"{NAME}.{self.env}")
        env = {name: value for name, value in known.items() if name != HOME_VARIABLE} | server.env
        changed = {**entry, **self._launch(server), self.env: env}
        is_kept = env or (self.env in entry and not known)
        return changed if is_kept else {name: value for name, value in changed.items() if name != self.env}

    def _launch(self, server: ServerEntry) -> dict[str, Any]:
        if self.joined:
            return {**self.fixed, self.command: [server.command, *server.args]}
        return {**self.fixed, self.command: server.command, "args": list(server.args)}


def own_server(program: Sequence[str], home: Home, toolset: str = "") -> ServerEntry:
    """Return the entry of the server that `program` starts.

    If PALAVER_HOME or XDG_DATA_HOME is set, the entry contains PALAVER_HOME. A client that was not started from a shell
    does not inherit the shell's variables.
    """
    selected = os.environ.get(HOME_VARIABLE) or os.environ.get("XDG_DATA_HOME")
    env = {HOME_VARIABLE: str(home.root)} if selected else {}
    return ServerEntry(program[0], (*program[1:], *_served(toolset)), env)


def docker_server(home: Home, toolset: str = "") -> ServerEntry:
    """Return the entry of a server in a container, without network and with the home mounted."""
    user = f"{os.getuid()}:{os.getgid()}"
    mount = f"type=bind,source={home.root},target={_MOUNTED}"
    run = ("run", "--rm", "--interactive", "--network", "none", "--user", user, "--mount", mount, IMAGE)
    return ServerEntry("docker", (*run, *_served(toolset)), {})


def _served(toolset: str) -> tuple[str, ...]:
    """Return the arguments that serve the toolsets. Add `--prefix` if two toolsets define a tool of the same name."""
    chosen = dict.fromkeys(filter(None, (name.strip() for name in toolset.split(","))))
    if not chosen:
        return ("mcp",)
    names = [tool.name for name in chosen for tool in find_toolset(name).tools]
    return ("mcp", "--toolset", ",".join(chosen), *(["--prefix"] if len(set(names)) < len(names) else []))
