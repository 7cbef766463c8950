"""MCP client of a fabric server in this process, with its own home, project and clock."""

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import anyio
from mcp.client.client import Client
from msgspec.structs import replace

from palaver.agents.fabric import FABRIC, FabricContext
from palaver.agents.server import build
from palaver.agents.toolset import ServedTools, ServerConfig
from palaver.core.conversation import now
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.templates.render import Renderer

from ..rag.client import content_of

DAY = 86_400_000


@dataclass
class Agent:
    """Agent that opens a connection for each call. The server context stays open between calls."""

    folder: Path
    home: Home = field(init=False)
    shift: int = 0
    """Milliseconds that the clock of the server is ahead."""

    def __post_init__(self) -> None:
        self.home = Home(self.folder / "palaver")
        self.project.mkdir(parents=True, exist_ok=True)

    @property
    def project(self) -> Path:
        """Return the folder in which the agent works."""
        return self.folder / "myapp"

    def clock(self) -> int:
        """Return the time of the server."""
        return now() + self.shift

    @property
    def place(self) -> ServerConfig:
        """Return the configuration of the server."""
        return ServerConfig(Archive(self.home), Renderer(), (self.project,), self.project)

    @cached_property
    def context(self) -> FabricContext:
        """Return the context of the tools."""
        return FabricContext(self.place, self.clock)

    def call(self, name: str, **arguments: object) -> dict[str, Any]:
        """Call a tool and return its reply."""
        found: list[dict[str, Any]] = []

        def opened(_: ServerConfig) -> FabricContext:
            return self.context

        served = ServedTools.of([replace(FABRIC, open=opened)])

        async def run() -> None:
            async with Client(build(served, self.place), mode="2026-07-28") as client:
                found.append(content_of(await client.call_tool(f"context.{name}", arguments)))

        anyio.run(run)
        return found[0]

    def store(self, content: str, kind: str = "decision", metadata: dict[str, Any] | None = None, **more: Any) -> str:
        """Store a memory and return its ID."""
        return str(self.call("store", type=kind, content=content, metadata=metadata or {}, **more)["id"])

    def event(self, kind: str, payload: dict[str, Any], session: str = "s1", **more: Any) -> dict[str, Any]:
        """Report an event and return the reply."""
        event = {
            "type": kind,
            "payload": payload,
            "timestamp": "2026-02-25T09:00:00.000Z",
            "sessionId": session,
            "cliType": "claude-code",
            **more,
        }
        return self.call("reportEvent", event=event)

    def contents(self, layer: int = 2) -> list[str]:
        """Return the contents of the memories in a layer, newest first."""
        return [each["content"] for each in self.call("list", layer=layer)["memories"]]

    def error(self, name: str, **arguments: object) -> str:
        """Call a tool and return the message of its error."""
        reply = self.call(name, **arguments)
        assert reply["success"] is False, reply
        return str(reply["error"])
