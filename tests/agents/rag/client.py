"""MCP client of a rag server in this process, with its own home and project."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import anyio
import orjson
from mcp.client.client import Client
from mcp_types import CallToolResult, TextContent
from msgspec.structs import replace

from palaver.agents.rag import RAG, RagContext
from palaver.agents.server import build
from palaver.agents.toolset import ServedTools, ServerConfig
from palaver.core.config import Config
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.templates.render import Renderer


@dataclass
class Agent:
    """Agent that opens a connection for each call. The server context stays open between calls."""

    folder: Path
    strict: bool = False

    def __post_init__(self) -> None:
        self.project.mkdir(parents=True, exist_ok=True)

    @property
    def project(self) -> Path:
        """Return the folder in which the agent works."""
        return self.folder / "my-web-app"

    @property
    def place(self) -> ServerConfig:
        """Return the configuration of the server. Only files of the project can be indexed."""
        home = Home(self.folder / "palaver")
        return ServerConfig(
            Archive(home, Config(strict_memories=self.strict)), Renderer(), (self.project,), self.project
        )

    @cached_property
    def context(self) -> RagContext:
        """Return the context of the tools."""
        return RagContext(self.place)

    def call(self, name: str, **arguments: object) -> dict[str, Any]:
        """Call a tool and return its reply."""
        found: list[dict[str, Any]] = []

        def opened(_: ServerConfig) -> RagContext:
            return self.context

        served = ServedTools.of([replace(RAG, open=opened)])

        async def run() -> None:
            async with Client(build(served, self.place), mode="2026-07-28") as client:
                found.append(content_of(await client.call_tool(name, arguments)))

        anyio.run(run)
        return found[0]

    def store(self, content: str, category: str = "fact", **more: object) -> str:
        """Store a memory and return its ID."""
        reply = self.call("store_memory", content=content, category=category, **more)
        assert reply.get("status") == "stored", reply
        return str(reply["memory_id"])

    def contents(self, name: str, query: str, **more: object) -> list[str]:
        """Return the contents that a tool retrieves, without weak results."""
        found = self.call(name, query=query, **more)["results"]
        return [each["content"] for each in found if not each.get("weak")]

    def error(self, name: str, **arguments: object) -> dict[str, Any]:
        """Call a tool and return its error."""
        reply = self.call(name, **arguments)
        assert list(reply) == ["error"], reply
        return reply["error"]  # type: ignore[no-any-return]


def content_of(result: CallToolResult) -> dict[str, Any]:
    """Return the text of a reply as JSON. It is also the structured content, except for an error."""
    [content] = result.content
    assert isinstance(content, TextContent)
    reply: dict[str, Any] = orjson.loads(content.text)
    assert result.structured_content == (None if result.is_error else reply)
    assert ("error" in reply) is result.is_error
    return reply
