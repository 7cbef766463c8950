"""MCP client of a Historian server in this process, with its own home and project."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import anyio
import orjson
from mcp.client.client import Client
from mcp_types import CallToolResult, TextContent
from msgspec.structs import replace

from palaver.agents.historian_tools import HISTORIAN, HistorianContext
from palaver.agents.server import build
from palaver.agents.toolset import ServedTools, ServerConfig
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.observe.memory import MemoryCore
from palaver.templates.render import Renderer


@dataclass
class Agent:
    """Agent that opens a connection for each call. The server context stays open between calls."""

    folder: Path

    def __post_init__(self) -> None:
        self.home = Home(self.folder / "palaver")
        self.project.mkdir(parents=True, exist_ok=True)

    @property
    def project(self) -> Path:
        """Return the folder in which the agent works."""
        return self.folder / "myapp"

    @property
    def place(self) -> ServerConfig:
        """Return the configuration of the server."""
        return ServerConfig(Archive(self.home), Renderer(), (), self.project)

    @cached_property
    def toolset(self) -> ServedTools:
        """Return the Historian toolset with one context."""
        context = HistorianContext(self.place)

        def opened(_: ServerConfig) -> HistorianContext:
            return context

        return ServedTools.of([replace(HISTORIAN, open=opened)])

    @cached_property
    def core(self) -> MemoryCore:
        """Return the memories of the same home, as another toolset opens them."""
        return Archive(self.home).memories

    def __call__(self, name: str, **arguments: object) -> dict[str, Any]:
        """Call a tool and return its reply."""
        found: list[dict[str, Any]] = []

        async def run() -> None:
            async with Client(build(self.toolset, self.place), mode="2026-07-28") as client:
                found.append(content_of(await client.call_tool(name, arguments)))

        anyio.run(run)
        return found[0]

    def remember(self, title: str, content: str, kind: str = "learning", **more: object) -> Path:
        """Store a memory and return its file."""
        reply = self("memory_remember", title=title, content=content, memoryType=kind, **more)
        assert reply["success"] is True, reply
        return Path(reply["filePath"])

    def write(self, place: str, text: str) -> Path:
        """Write a file below `.mnemonics` as a user does, and return it."""
        file = self.project / ".mnemonics" / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def recall(self, query: str, **more: object) -> dict[str, str]:
        """Return the recalled contents by file name, best first."""
        found = self("memory_recall", query=query, **more)["memories"]
        return {Path(each["path"]).name: each["content"] for each in found}

    def problems(self) -> Mapping[str, str]:
        """Return the problems by file name."""
        found = self("memory_list_types").get("problems", [])
        return {Path(each["path"]).name: each["problem"] for each in found}


def content_of(result: CallToolResult) -> dict[str, Any]:
    """Return the text of a reply as JSON. It is also the structured content, except for an error."""
    [content] = result.content
    assert isinstance(content, TextContent)
    reply: dict[str, Any] = orjson.loads(content.text)
    assert result.structured_content == (None if result.is_error else reply)
    assert (reply.get("success") is False and "error" in reply) is result.is_error
    return reply
