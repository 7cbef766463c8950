"""Table of the MCP clients whose configuration Palaver can change. docs/clients.md names the source of each row."""

import os
import sys
from pathlib import Path, PurePosixPath
from shutil import which
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import InvalidInput
from .server_entry import EntryShape

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
        other = path.with_name(self.alternative) if self.alternative else path
        return other if other.exists() and not path.exists() else path

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
    found = next((client for client in CLIENTS if client.name == name), None)
    if found is None:
        names = ", ".join(client.name for client in CLIENTS)
        raise InvalidInput(f"Unknown client: {name}", hint=f"Use one of: {names}.")
    return found


def _expanded(path: str) -> Path:
    home = Path.home()
    config = os.environ.get("XDG_CONFIG_HOME") or str(home / ".config")
    apps = str(home / "Library" / "Application Support") if sys.platform == "darwin" else config
    return Path(path.format(config=config, apps=apps)).expanduser()
