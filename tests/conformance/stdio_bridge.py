"""HTTP front of `palaver mcp` on stdio, because the conformance suite speaks only HTTP.

Each session with a handshake gets a process of its own. Requests without a session share one, as the stateless protocol
allows. The bridge passes only replies on, so scenarios with notifications need the HTTP server.
"""

import itertools
import sys
from typing import Any

import anyio
import orjson
import uvicorn
from anyio.abc import Process
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class StdioServer:
    """Process of `palaver mcp`. Concurrent requests may use the same IDs, so the process sees other ones."""

    def __init__(self, process: Process) -> None:
        self._process, self._ids = process, itertools.count()
        self._replies: dict[int, dict[str, Any]] = {}
        self._arrived = anyio.Condition()

    @classmethod
    async def start(cls) -> "StdioServer":
        """Start the process."""
        return cls(await anyio.open_process([sys.executable, "-m", "palaver", "mcp"], stderr=None))

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message."""
        assert self._process.stdin is not None
        await self._process.stdin.send(orjson.dumps(message) + b"\n")

    async def ask(self, message: dict[str, Any]) -> dict[str, Any]:
        """Write a request and return its reply."""
        number = next(self._ids)
        await self.send({**message, "id": number})
        async with self._arrived:
            while number not in self._replies:
                await self._arrived.wait()
        return {**self._replies.pop(number), "id": message["id"]}

    async def read(self) -> None:
        """Read replies until the process ends."""
        assert self._process.stdout is not None
        rest = b""
        async for chunk in self._process.stdout:
            *lines, rest = (rest + chunk).split(b"\n")
            for reply in map(orjson.loads, lines):
                if "method" not in reply and reply.get("id") is not None:
                    self._replies[reply["id"]] = reply
            async with self._arrived:
                self._arrived.notify_all()


class StdioBridge:
    """HTTP application that passes messages to processes."""

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self._group, self._servers = group, dict[str, StdioServer]()
        self._sessions = itertools.count(1)
        self._starting = anyio.Lock()

    async def handle(self, request: Request) -> Response:
        """Answer a message."""
        if request.method != "POST":
            return Response(status_code=405)
        message, session = orjson.loads(await request.body()), request.headers.get("mcp-session-id", "")
        if message.get("method") == "initialize":
            session = f"session-{next(self._sessions)}"
        server = await self._server(session)
        if "id" not in message or "method" not in message:
            await server.send(message)
            return Response(status_code=202)
        with anyio.fail_after(60):
            reply = await server.ask(message)
        headers = {"mcp-session-id": session} if session else None
        return Response(orjson.dumps(reply), media_type="application/json", headers=headers)

    async def _server(self, session: str) -> StdioServer:
        async with self._starting:
            if session not in self._servers:
                server = self._servers[session] = await StdioServer.start()
                self._group.start_soon(server.read)
        return self._servers[session]


async def main(port: int) -> None:
    """Serve until interrupted."""
    async with anyio.create_task_group() as group:
        bridge = StdioBridge(group)
        app = Starlette(routes=[Route("/mcp", bridge.handle, methods=["GET", "POST", "DELETE"])])
        await uvicorn.Server(uvicorn.Config(app, port=port, log_level="warning")).serve()
        group.cancel_scope.cancel()


if __name__ == "__main__":
    anyio.run(main, int(sys.argv[1]))
