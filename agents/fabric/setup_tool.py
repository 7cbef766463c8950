"""Fabric tool that adds this server to the configuration of a client."""

from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import Field

from ...core.errors import InvalidInput
from ..clients.client_file import backup_of
from ..clients.client_setup import apply, plan, snippet
from ..clients.client_table import CLIENTS, find_client
from ..clients.server_entry import IMAGE, ServerEntry, docker_server, own_server
from ..toolset import ToolReply
from .fabric_context import FabricContext
from .fabric_data import SetupReply

_SERVED: Final = "conversation,fabric"
"""Toolsets that the written entry serves: the default and this one."""
_BUILD: Final = f"In a checkout, build the image with `docker build -t {IMAGE} .`. "
_DONE: Final = {"add": "added to", "update": "updated in", "keep": "already configured in"}


def setup(
    fabric: FabricContext,
    cli: Annotated[
        Literal["opencode", "claude", "claude-code", "kimi", "codex", "gemini", "cursor", "docker", "generic"],
        Field(description="Client. For docker and generic, no file is written"),
    ],
    server_path: Annotated[
        str | None, Field(alias="serverPath", description="Absolute path of the palaver program. Default: this one")
    ] = None,
    use_docker: Annotated[bool, Field(alias="useDocker", description="Run the server in a container")] = False,
    preview: Annotated[bool, Field(description="Return the entry without writing it")] = False,
) -> ToolReply:
    """Add this server to the configuration of a client. The rest of the file stays as it is, and has a backup."""
    docker = use_docker or cli == "docker"
    server = _server(fabric, server_path, docker=docker)
    if cli in {"docker", "generic"}:
        entries = [f"{client.title} ({client.path}):\n{snippet(client, server)}" for client in CLIENTS]
        text = "\n".join(entries) if cli == "docker" else snippet(find_client("cursor"), server)
        message = f"{_BUILD if docker else ''}Copy the entry into the configuration of your client."
        done = SetupReply(cli, message, success=not preview, preview=preview, use_docker=docker, snippet=text)
        return fabric.reply(done)
    client = find_client(cli)
    if preview:
        message = f"This would be in {client.path}. Call context.setup without preview to write it."
        entry = snippet(client, server)
        return fabric.reply(SetupReply(cli, message, preview=True, use_docker=docker, snippet=entry))
    change = plan(client, server)
    apply(change)
    backup = str(backup_of(change.path)) if change.keeps_backup else ""
    mode = " (Docker mode)" if docker else ""
    message = f"Palaver {_DONE[change.action]} {client.title}{mode}. Restart {client.title} to apply it."
    return fabric.reply(SetupReply(cli, message, success=True, config_file=str(change.path), backup=backup))


def _server(fabric: FabricContext, path: str | None, *, docker: bool) -> ServerEntry:
    home = fabric.config.home
    if docker:
        return docker_server(home, _SERVED)
    if path is not None and not Path(path).is_absolute():
        raise InvalidInput(f"serverPath is not absolute: {path}", hint="Give the absolute path of palaver.")
    return own_server(fabric.config.program if path is None else (path,), home, _SERVED)
