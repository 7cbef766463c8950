"""The written entries start the server when an MCP client launches them."""

import os
import sys
from pathlib import Path

import anyio
import pytest
from mcp.client.client import Client as McpClient
from mcp.client.stdio import StdioServerParameters, stdio_client

from palaver.agents.clients.client_setup import apply, plan
from palaver.agents.clients.client_table import CLIENTS, docker_server, find_client, own_server
from palaver.core.home import Home

from ... import demo
from .config_samples import RICH, launch, write


def tools_and_text(words: list[str], env: dict[str, str]) -> tuple[list[str], str]:
    """Start the server with the SDK's client, and return its tools and the text of a search."""

    async def run() -> tuple[list[str], str]:
        # The SDK passes only HOME, PATH and a few others, as the clients do.
        server = StdioServerParameters(command=words[0], args=words[1:], env=env, cwd="/")
        async with McpClient(stdio_client(server), mode="2026-07-28") as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            found = await client.call_tool("search", {"query": "sqlite"})
            return tools, str(found.content)

    return anyio.run(run)


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return demo.archived(tmp_path_factory.mktemp("archive ž"))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Program in a folder with a space and other letters, as in an installation."""
    path = tmp_path / "my tools ž" / "palaver"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m palaver "$@"\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("name", ["claude-code", "zed", "codex", "opencode", "goose"])
def test_the_entry_starts_the_server(name: str, program: Path, archived: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry of each shape starts the server of the selected home, from any folder and without our environment.

    The file already has comments and other servers.
    """
    monkeypatch.setenv("PALAVER_HOME", str(archived.root))
    client = find_client(name)
    write(client.path, RICH[name])
    change = plan(client, own_server([str(program)], Home.find()))
    apply(change)
    if change.action == "paste":
        write(client.path, RICH[name].replace("extensions:\n", change.snippet, 1))
    words, env = launch(client)
    tools, found = tools_and_text(words, env)

    assert tools == ["search", "get_observations", "read"]
    assert "obs-" in found
    assert env == {"PALAVER_HOME": str(archived.root)}


def test_shapes_of_all_clients_are_covered() -> None:
    """The clients of the test above have all shapes of an entry, except for fixed fields."""
    shapes = {(client.shape.command, client.shape.joined, client.shape.env) for client in CLIENTS}

    assert shapes == {("command", False, "env"), ("command", True, "environment"), ("cmd", False, "envs")}


def test_the_default_home_needs_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry names the home only if a variable of the current environment selects it."""
    monkeypatch.delenv("PALAVER_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert own_server(["/p"], Home.find()).env == {"PALAVER_HOME": "/data/palaver"}

    monkeypatch.delenv("XDG_DATA_HOME")
    assert own_server(["/p"], Home.find(), "theo").args == ("mcp", "--toolset", "theo")
    assert own_server(["/p"], Home.find()).env == {}


def test_the_container_mounts_the_home() -> None:
    """The entry for Docker mounts the home at the folder of the Dockerfile, without network, as the current user."""
    server = docker_server(Home(Path("/home/zoë/my archive")))
    dockerfile = (Path(__file__).parents[3] / "Dockerfile").read_text("utf-8")

    assert server.command == "docker"
    assert "type=bind,source=/home/zoë/my archive,target=/data" in server.args
    assert "PALAVER_HOME=/data" in dockerfile
    assert server.args[-2:] == ("palaver-archive", "mcp")
    assert f"{os.getuid()}:{os.getgid()}" in server.args
