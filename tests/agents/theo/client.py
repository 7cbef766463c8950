"""MCP client of a Theo server in this process, with its own home."""

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

from palaver.agents.server import build
from palaver.agents.theo import THEO
from palaver.agents.theo.theo_context import TheoContext
from palaver.agents.toolset import ServedTools, ServerConfig
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.templates.render import Renderer


@dataclass
class Agent:
    """Agent that opens a connection for each call. The server context stays open between calls.

    `project` is the working folder of the agent.
    """

    home: Path
    project: Path = Path()

    @cached_property
    def toolset(self) -> ServedTools:
        """Return the Theo toolset with one context. Documents are in the parent folder of its home."""
        context = TheoContext(self.place)

        def opened(_: ServerConfig) -> TheoContext:
            return context

        return ServedTools.of([replace(THEO, open=opened)])

    @property
    def place(self) -> ServerConfig:
        """Return the configuration of the server."""
        return ServerConfig(Archive(Home(self.home)), Renderer(), (self.home.parent,), self.project)

    def call(self, name: str, **arguments: object) -> dict[str, Any]:
        """Call a tool on a new connection and return its reply."""
        [envelope] = self.calls((name, arguments))
        return envelope

    def calls(self, *calls: tuple[str, Mapping[str, object]]) -> list[dict[str, Any]]:
        """Call several tools on one connection and return their replies."""
        found: list[dict[str, Any]] = []

        async def run() -> None:
            async with Client(build(self.toolset, self.place), mode="2026-07-28") as client:
                found.extend([envelope(await client.call_tool(name, dict(given))) for name, given in calls])

        anyio.run(run)
        return found

    def data(self, name: str, **arguments: object) -> dict[str, Any]:
        """Return the data of a successful call."""
        reply = self.call(name, **arguments)
        assert reply["success"] is True, reply
        return reply["data"]  # type: ignore[no-any-return]

    def store(self, content: str, kind: str = "preference", **more: object) -> str:
        """Store a memory and return its ID."""
        return str(self.data("memory_store", content=content, memory_type=kind, **more)["id"])


def envelope(result: CallToolResult) -> dict[str, Any]:
    """Return the text of a reply as JSON. It is also the structured content, except for an error."""
    [content] = result.content
    assert isinstance(content, TextContent)
    content_: dict[str, Any] = orjson.loads(content.text)
    assert result.structured_content == (None if result.is_error else content_)
    assert content_["success"] is not result.is_error
    return content_
