"""A surface over the Model Context Protocol: standard input and output, both eras of the protocol.

Importing this module costs about a second, nearly all of it the SDK, so only serving processes do.
"""

import faulthandler
import logging
import sys
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ListedTool
from mcp_types.version import is_version_at_least

from ..core.errors import PalaverError
from .desk import Place
from .stdio import serve_stdio
from .surface import Surface
from .toolset import Effect, Reply, Tool, Toolset

STRUCTURED_SINCE = "2025-06-18"
"""The first protocol version whose clients know structured content."""


def serve(surface: Surface, place: Place, version: str = "") -> None:
    """Serve on stdin and stdout until the client closes them. Logs and stack dumps go to stderr."""
    faulthandler.enable(sys.stderr)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    try:
        anyio.run(serve_stdio, build(surface, place, version))
    except* BrokenPipeError:
        logging.getLogger(__name__).info("the client has gone")


def build(surface: Surface, place: Place, version: str = "") -> Server[Any]:
    """The server, not yet connected to anything."""
    return _Served(surface, place).server(version)


class _Served:
    """A surface being served: lists its tools, and runs one call at a time beside the event loop."""

    def __init__(self, surface: Surface, place: Place) -> None:
        self._surface, self._place = surface, place
        self._desks: dict[str, object] = {}
        self._one_at_a_time = anyio.CapacityLimiter(1)

    def server(self, version: str) -> Server[Any]:
        return Server(
            "palaver",
            version=version,
            instructions=self._surface.instructions,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def _list(
        self, _context: ServerRequestContext[Any, Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        online = self._place.judging is not None
        listed = [_listed(name, tool, online=online) for name, (_, tool) in self._surface.tools.items()]
        return ListToolsResult(tools=listed)

    async def _call(self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
        if params.name not in self._surface.tools:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}. Tools: {', '.join(self._surface.tools)}.")
        toolset, tool = self._surface.tools[params.name]
        try:
            run = partial(self._run, toolset, tool, params.arguments or {})
            reply = await anyio.to_thread.run_sync(run, limiter=self._one_at_a_time)
        except PalaverError as error:
            return _result(toolset.refusal(error), context.protocol_version, refused=True)
        return _result(reply, context.protocol_version)

    def _run(self, toolset: Toolset, tool: Tool, arguments: dict[str, object]) -> Reply:
        if toolset.name not in self._desks:
            self._desks[toolset.name] = toolset.open(self._place)
        return tool.call(self._desks[toolset.name], arguments)


def _listed(name: str, tool: Tool, *, online: bool) -> ListedTool:
    """A tool as clients see it. `online` is whether memories may be judged by a language model elsewhere."""
    reads, destroys = tool.effect is Effect.READS, tool.effect is Effect.DESTROYS
    return ListedTool(
        name=name,
        description=tool.description,
        input_schema=tool.schema,
        annotations=ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=None if reads else destroys,
            open_world_hint=online and tool.judges,
        ),
    )


def _result(reply: Reply, protocol: str, *, refused: bool = False) -> CallToolResult:
    """Return the reply as text, and a JSON reply also as structured content if the protocol version has that."""
    structured = dict(reply.data) if reply.data and is_version_at_least(protocol, STRUCTURED_SINCE) else None
    content: list[ContentBlock] = [TextContent(type="text", text=reply.text)]
    return CallToolResult(content=content, structured_content=structured, is_error=refused)
