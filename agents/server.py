"""A toolset over the Model Context Protocol: standard input and output, both eras of the protocol.

Importing this module costs about a second, nearly all of it the SDK, so only serving processes do.
"""

import faulthandler
import logging
import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import anyio.to_thread
import orjson
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ListedTool
from mcp_types.version import is_version_at_least

from ..core.errors import PalaverError
from ..templates.render import Renderer
from .toolset import Desk, Layers, Reply, Tool, Toolset

STRUCTURED_SINCE = "2025-06-18"
"""The first protocol version whose clients know structured content."""


def serve(toolset: Toolset, open_layers: Callable[[], Layers], renderer: Renderer, version: str = "") -> None:
    """Serve on stdin and stdout until the client closes them. Logs and stack dumps go to stderr.

    `open_layers` is called at the first tool call, so that connecting stays fast.
    """
    faulthandler.enable(sys.stderr)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    # The thread that waits for stdin cannot be interrupted, so Ctrl-C ends the process outright. That loses nothing:
    # whatever was stored was stored in a transaction.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        anyio.run(_serve, build(toolset, open_layers, renderer, version))
    except* BrokenPipeError:
        logging.getLogger(__name__).info("the client has gone")


def build(toolset: Toolset, open_layers: Callable[[], Layers], renderer: Renderer, version: str = "") -> Server[Any]:
    """The server, not yet connected to anything."""
    return _Surface(toolset, open_layers, renderer).server(version)


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


class _Surface:
    """A toolset being served: lists its tools, and runs one call at a time beside the event loop."""

    def __init__(self, toolset: Toolset, open_layers: Callable[[], Layers], renderer: Renderer) -> None:
        self._toolset = toolset
        self._tools = {tool.name: tool for tool in toolset.tools}
        self._open_layers = open_layers
        self._renderer = renderer
        self._desk: Desk | None = None
        self._one_at_a_time = anyio.CapacityLimiter(1)

    def server(self, version: str) -> Server[Any]:
        return Server(
            "palaver",
            version=version,
            instructions=self._toolset.instructions,
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def _list(
        self, _context: ServerRequestContext[Any, Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        return ListToolsResult(tools=[_listed(tool) for tool in self._toolset.tools])

    async def _call(self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}. Tools: {', '.join(self._tools)}.")
        try:
            run = partial(self._run, tool, params.arguments or {})
            reply = await anyio.to_thread.run_sync(run, limiter=self._one_at_a_time)
        except PalaverError as error:
            return CallToolResult(content=[_text(self._toolset.wording(error))], is_error=True)
        return _result(reply, context.protocol_version)

    def _run(self, tool: Tool, arguments: dict[str, object]) -> Reply:
        if self._desk is None:
            self._desk = Desk(self._open_layers(), self._renderer)
        return tool.call(self._desk, arguments)


def _listed(tool: Tool) -> ListedTool:
    return ListedTool(
        name=tool.name,
        description=tool.description,
        input_schema=tool.schema,
        annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False),
    )


def _result(reply: Reply, protocol: str) -> CallToolResult:
    """The reply, paid for once: JSON as structured content, or as the text where the client knows no better."""
    if reply.data is None:
        return CallToolResult(content=[_text(reply.text)])
    if is_version_at_least(protocol, STRUCTURED_SINCE):
        return CallToolResult(content=[_text(reply.text)], structured_content=dict(reply.data))
    return CallToolResult(content=[_text(orjson.dumps(dict(reply.data)).decode())])


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)
