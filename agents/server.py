"""MCP server that offers the toolsets, for all protocol versions, and MCP over standard input and output.

Only processes that serve tools import this module, because importing it takes about a second, mostly for the SDK.

The SDK ignores a line of input that its JSON parser rejects, so the client would wait forever for the reply. This
module parses the line again with the standard library, which accepts lone surrogates and numbers of any length. If
that fails too, it replies with a JSON-RPC error, which contains the ID of the request if the ID is readable.
"""

import faulthandler
import json
import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final, cast

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    PromptsCapability,
    RequestId,
    ResourcesCapability,
    ServerCapabilities,
    ToolsCapability,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

from .resources import SECONDS, ArchiveHandlers, SessionWatch
from .tool_calls import ToolCalls, ToolContexts
from .toolset import ServedTools, ServerConfig

LONGEST_INTEGER = 19
"""Digits of the largest 64-bit integer. Longer numbers are parsed as floats, as in JavaScript."""


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until the client closes standard input."""
    async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as group:
        forward, readable = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def relay() -> None:
            async with forward:
                async for item in incoming:
                    await _relay(item, forward, outgoing)

        group.start_soon(relay)
        await server.run(readable, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()


async def _relay(item: SessionMessage | Exception, forward: MemoryObjectSendStream[Any], outgoing: Any) -> None:
    """Forward a valid message to the server, or answer an invalid line with an error."""
    if not isinstance(item, ValidationError):
        await forward.send(item)
        return
    answer = reread(item)
    await (outgoing if isinstance(answer.message, JSONRPCError) else forward).send(answer)


def reread(error: ValidationError) -> SessionMessage:
    """Parse again a line that the SDK rejected. Return its message, or an error reply."""
    first = error.errors()[0]
    if first["type"] != "json_invalid":
        return _refusal(first["input"], INVALID_REQUEST, "Invalid request: not a JSON-RPC 2.0 message")
    try:
        value = json.loads(first["input"], parse_int=_number)
    except (ValueError, RecursionError):
        return _refusal(None, PARSE_ERROR, f"Parse error: {first['msg']}")
    text = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))
    except ValidationError as again:
        return _refusal(value, PARSE_ERROR, f"Parse error: {again.errors()[0]['msg']}")


def _refusal(value: object, code: int, message: str) -> SessionMessage:
    """Return an error reply to the request `value`. The ID is null if the request has no ID."""
    request_id = cast("dict[str, object]", value).get("id") if isinstance(value, dict) else None
    request: RequestId | None = request_id if isinstance(request_id, int | str) else None
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=message)))


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else float(digits)


_FIXED: Final = CacheHint(ttl_ms=3_600_000)
"""Cache hint for results that do not change while the server runs: clients may cache them for an hour."""
_CHANGING: Final = CacheHint(ttl_ms=round(SECONDS * 1000))
"""Cache hint for the list of sessions. Clients may cache it for the interval at which the server checks for changes."""
CACHE_HINTS: Final[dict[CacheableMethod, CacheHint]] = {
    "server/discover": _FIXED,
    "tools/list": _FIXED,
    "prompts/list": _FIXED,
    "resources/templates/list": _FIXED,
    "resources/list": _CHANGING,
    "resources/read": CacheHint(),
}
"""Cache hints by method. A resource is never cached, because it can be deleted at any time."""


class PalaverServer(Server[Any]):
    """Server that announces the same capabilities to clients of all protocol versions."""

    def get_capabilities(self, *_options: Any, **_named: Any) -> ServerCapabilities:
        """Return the capabilities. Only the list of resources changes while the server runs."""
        derived = super().get_capabilities()
        return derived.model_copy(
            update={
                "tools": ToolsCapability(list_changed=False),
                "prompts": derived.prompts and PromptsCapability(list_changed=False),
                "resources": derived.resources and ResourcesCapability(list_changed=True, subscribe=False),
            }
        )


def serve(served: ServedTools, config: ServerConfig, version: str = "") -> None:
    """Serve on stdin and stdout until the client closes them. Logs and stack dumps go to stderr."""
    log_to_stderr()
    try:
        anyio.run(serve_stdio, build(served, config, version))
    except* BrokenPipeError:
        logging.getLogger(__name__).info("the client closed the connection")


def log_to_stderr() -> None:
    """Send warnings and stack dumps of this process to stderr."""
    faulthandler.enable(sys.stderr)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING)


def build(served: ServedTools, config: ServerConfig, version: str = "") -> Server[Any]:
    """Build a server that is not connected to a client yet."""
    contexts = ToolContexts(config)
    calls = ToolCalls(served, contexts, online=config.archive.make_judge is not None, read_only=config.home.read_only)
    common: dict[str, Any] = {
        "version": version,
        "instructions": served.instructions_for(config),
        "cache_hints": CACHE_HINTS,
        "on_list_tools": calls.list_tools,
        "on_call_tool": calls.call_tool,
    }
    conversation = next((toolset for toolset, _ in served.tools.values() if toolset.name == "conversation"), None)
    if conversation is None:
        return PalaverServer("palaver", **common)
    archive = ArchiveHandlers(conversation, contexts)
    return PalaverServer(
        "palaver",
        **common,
        lifespan=watching(archive.watch),
        on_list_resources=archive.list_resources,
        on_list_resource_templates=archive.list_templates,
        on_read_resource=archive.read_resource,
        on_subscriptions_listen=archive.listen,
        on_list_prompts=archive.list_prompts,
        on_get_prompt=archive.get_prompt,
        on_completion=archive.complete,
    )


def watching(watch: SessionWatch) -> Any:
    """Return a lifespan function, which watches the latest sessions while the server runs."""

    @asynccontextmanager
    async def lifespan(_server: Server[Any]) -> AsyncGenerator[dict[str, Any]]:
        async with anyio.create_task_group() as group:
            group.start_soon(watch.run)
            yield {}
            group.cancel_scope.cancel()

    return lifespan
