"""Table of the MCP clients that Palaver can configure, and the command by which they start its server.

docs/clients.md names the source of each row.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from shutil import which
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import InvalidInput
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
        variables = as_table(entry.get(self.env) or {}, f"{NAME}.{self.env}")
        env = {name: value for name, value in variables.items() if name != HOME_VARIABLE} | server.env
        changed = {**entry, **self._launch(server), self.env: env}
        is_kept = env or (self.env in entry and not variables)
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


_PLAIN: Final = EntryShape()
_TYPED: Final = EntryShape(fixed={"type": "stdio"})
_OPENCODE: Final = EntryShape(joined=True, env="environment", fixed={"type": "local", "enabled": True})
_COPILOT: Final = EntryShape(fixed={"type": "local"}, initial={"tools": ["*"]})
_GOOSE: Final = EntryShape(
    command="cmd",
    env="envs",
    fixed={"type": "stdio", "enabled": True},
    initial={"name": "palaver", "description": "Search earlier conversations with coding agents", "timeout": 300},
)


class Client(Struct, frozen=True):
    """MCP client with the location and the format of its configuration.

    In paths, `{config}` is XDG_CONFIG_HOME or ~/.config. `{apps}` is ~/Library/Application Support on macOS, and
    `{config}` elsewhere.
    """

    name: str
    title: str
    folder: str
    """Folder that contains the configuration, such as `~/.codex`."""
    file: str
    """Path of the configuration file, relative to the folder."""
    section: str = "mcpServers"
    """Key of the table that contains the servers."""
    shape: EntryShape = _PLAIN
    format: str = "json"
    variable: str = ""
    """Environment variable whose value, if set, is used instead of the folder."""
    alternative: str = ""
    """Name of another configuration file, used if it exists and `file` does not."""
    signs: tuple[str, ...] = ()
    """Paths whose existence shows that the client is installed. If empty, the folder is checked."""
    program: str = ""
    """Name of the client's program, searched on PATH."""

    @property
    def path(self) -> Path:
        """Path of the configuration file, which may not exist."""
        folder = _expanded(self.folder)
        if self.variable and os.environ.get(self.variable):
            folder = Path(os.environ[self.variable]).expanduser()
        path = folder / self.file
        alternative = path.with_name(self.alternative) if self.alternative else path
        return alternative if alternative.exists() and not path.exists() else path

    @property
    def is_installed(self) -> bool:
        """True if the configuration file, another file of the client, or its program exists."""
        if self.path.exists() or any(_expanded(sign).exists() for sign in self.signs or (self.folder,)):
            return True
        return bool(self.program) and which(self.program) is not None

    def beside(self, file: str, group: str, title: str) -> "Client":
        """Return this client with another file, in the folder of its configuration file.

        Args:
            file: Path of the other file, relative to the folder of the configuration file.
            group: Group of the file in `palaver install`, such as `hooks`. It is appended to the client's name.
            title: Text that is appended to the client's title, such as ` hooks`.
        """
        path = PurePosixPath(self.file).parent / file
        return replace(self, name=f"{self.name}-{group}", title=self.title + title, file=str(path), alternative="")


CLIENTS: Final = (
    Client(
        "claude-code",
        "Claude Code",
        "~",
        ".claude.json",
        shape=_TYPED,
        variable="CLAUDE_CONFIG_DIR",
        signs=("~/.claude",),
        program="claude",
    ),
    Client("claude", "Claude Desktop", "{apps}/Claude", "claude_desktop_config.json"),
    Client("cursor", "Cursor", "~/.cursor", "mcp.json"),
    Client(
        "codex",
        "Codex",
        "~/.codex",
        "config.toml",
        section="mcp_servers",
        format="toml",
        variable="CODEX_HOME",
        program="codex",
    ),
    Client(
        "gemini",
        "Gemini CLI",
        "~",
        ".gemini/settings.json",
        variable="GEMINI_CLI_HOME",
        signs=("~/.gemini/tmp",),  # Antigravity uses ~/.gemini too.
        program="gemini",
    ),
    Client("copilot", "Copilot CLI", "~/.copilot", "mcp-config.json", shape=_COPILOT, variable="COPILOT_HOME"),
    Client("kimi", "Kimi CLI", "~/.kimi", "mcp.json", variable="KIMI_SHARE_DIR"),
    Client("kimi-code", "Kimi Code", "~/.kimi-code", "mcp.json", variable="KIMI_CODE_HOME"),
    Client(
        "opencode",
        "OpenCode",
        "{config}/opencode",
        "opencode.json",
        section="mcp",
        shape=_OPENCODE,
        alternative="opencode.jsonc",
        program="opencode",
    ),
    Client(
        "vscode",
        "VS Code",
        "{apps}/Code/User",
        "mcp.json",
        section="servers",
        shape=_TYPED,
        program="code",
    ),
    Client("zed", "Zed", "{config}/zed", "settings.json", section="context_servers"),
    Client("windsurf", "Windsurf", "~/.codeium/windsurf", "mcp_config.json"),
    Client(
        "goose",
        "Goose",
        "{config}/goose",
        "config.yaml",
        section="extensions",
        shape=_GOOSE,
        format="yaml",
        program="goose",
    ),
    Client("kiro", "Kiro", "~/.kiro", "settings/mcp.json", program="kiro"),
    Client("droid", "Droid", "~/.factory", "mcp.json", shape=_TYPED, program="droid"),
)


def find_client(name: str) -> Client:
    """Return the client with this name.

    Raises:
        InvalidInput: No client has this name.
    """
    match = next((client for client in CLIENTS if client.name == name), None)
    if match is None:
        names = ", ".join(client.name for client in CLIENTS)
        raise InvalidInput(f"Unknown client: {name}", hint=f"Use one of: {names}.")
    return match


def _expanded(path: str) -> Path:
    home = Path.home()
    config = os.environ.get("XDG_CONFIG_HOME") or str(home / ".config")
    apps = str(home / "Library" / "Application Support") if sys.platform == "darwin" else config
    return Path(path.format(config=config, apps=apps)).expanduser()
