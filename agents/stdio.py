"""MCP over standard input and output, with an answer to every line that the SDK cannot read.

The SDK ignores a line that its JSON parser rejects, so the client waits forever for the reply. This module parses the
line again with the standard library, which accepts lone surrogates and numbers of any length. If that fails too, it
replies with a JSON-RPC error. The error contains the ID of the request if the ID is readable.
"""

import json
from typing import Any, cast

import anyio
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    RequestId,
    jsonrpc_message_adapter,
)
from pydantic import ValidationError

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
    found = cast("dict[str, object]", value).get("id") if isinstance(value, dict) else None
    request: RequestId | None = found if isinstance(found, int | str) else None
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request, error=ErrorData(code=code, message=message)))


def _number(digits: str) -> int | float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else float(digits)
