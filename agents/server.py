"""Server of toolsets over the Model Context Protocol, on standard input and output, for all protocol versions.

Only processes that serve tools import this module, because importing it takes about a second, mostly for the SDK.
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
from .stdio import serve_stdio
from .toolset import Effect, ServedTools, ServerConfig, Tool, ToolReply, Toolset

STRUCTURED_SINCE = "2025-06-18"
"""First protocol version with structured content."""


def serve(served: ServedTools, config: ServerConfig, version: str = "") -> None:
    """Serve on stdin and stdout until the client closes them. Logs and stack dumps go to stderr."""
    faulthandler.enable(sys.stderr)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
    try:
        anyio.run(serve_stdio, build(served, config, version))
    except* BrokenPipeError:
        logging.getLogger(__name__).info("the client closed the connection")


def build(served: ServedTools, config: ServerConfig, version: str = "") -> Server[Any]:
    """Return a server that is not connected yet."""
    return _ToolServer(served, config).server(version)


class _ToolServer:
    """Server that lists tools, and runs one call at a time outside the event loop."""

    def __init__(self, served: ServedTools, config: ServerConfig) -> None:
        self._served, self._config = served, config
        self._contexts: dict[str, object] = {}
        self._one_at_a_time = anyio.CapacityLimiter(1)

    def server(self, version: str) -> Server[Any]:
        return Server(
            "palaver",
            version=version,
            instructions=self._served.instructions_for(self._config),
            on_list_tools=self._list,
            on_call_tool=self._call,
        )

    async def _list(
        self, _context: ServerRequestContext[Any, Any], _params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        online, read_only = self._config.make_judge is not None, self._config.home.read_only
        listed = [
            _listed(name, tool, online=online, read_only=read_only) for name, (_, tool) in self._served.tools.items()
        ]
        return ListToolsResult(tools=listed)

    async def _call(self, context: ServerRequestContext[Any, Any], params: CallToolRequestParams) -> CallToolResult:
        if params.name not in self._served.tools:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}. Tools: {', '.join(self._served.tools)}.")
        toolset, tool = self._served.tools[params.name]
        try:
            run = partial(self._run, toolset, tool, params.arguments or {})
            reply = await anyio.to_thread.run_sync(run, limiter=self._one_at_a_time)
        except PalaverError as error:
            return _result(toolset.to_error_reply(error), context.protocol_version, failed=True)
        return _result(reply, context.protocol_version)

    def _run(self, toolset: Toolset, tool: Tool, arguments: dict[str, object]) -> ToolReply:
        if toolset.name not in self._contexts:
            self._contexts[toolset.name] = toolset.open(self._config)
        return tool.call(self._contexts[toolset.name], arguments, read_only=self._config.home.read_only)


def _listed(name: str, tool: Tool, *, online: bool, read_only: bool) -> ListedTool:
    """Return a tool in the format for clients. `online` is true if a language model can judge memories."""
    reads = tool.effect is Effect.READS or (read_only and tool.effect is Effect.RECORDS)
    destroys = tool.effect is Effect.DESTROYS
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


def _result(reply: ToolReply, protocol: str, *, failed: bool = False) -> CallToolResult:
    """Return the reply as text. If the protocol version supports it, add a JSON reply as structured content."""
    structured = dict(reply.data) if reply.data and is_version_at_least(protocol, STRUCTURED_SINCE) else None
    content: list[ContentBlock] = [TextContent(type="text", text=reply.text)]
    return CallToolResult(content=content, structured_content=structured, is_error=failed)
