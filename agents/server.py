"""MCP server that offers the toolsets, for all protocol versions.

Only processes that serve tools import this module, because importing it takes about a second, mostly for the SDK.
"""

import faulthandler
import logging
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
from mcp.server.caching import CacheableMethod, CacheHint
from mcp.server.lowlevel import Server
from mcp_types import PromptsCapability, ResourcesCapability, ServerCapabilities, ToolsCapability

from .archive_handlers import ArchiveHandlers
from .session_watch import SECONDS, SessionWatch
from .stdio import serve_stdio
from .tool_calls import ToolCalls, ToolContexts
from .toolset import ServedTools, ServerConfig

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
    calls = ToolCalls(served, config, contexts)
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
