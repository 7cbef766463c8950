"""Tool calls over MCP: list of tools, calls, confirmation of deletions, progress, and contexts of toolsets.

Before a tool deletes something, the user confirms it through elicitation (a question of the server that the client
shows). Since protocol version 2026-07-28, a server cannot send requests. It returns the question as the result of the
call, and the client repeats the call with the answer. The key of the question is its digest, so an answer is valid
only for the same question. If the items to delete have changed in the meantime, the user is asked again.

A tool reports its progress from its thread, and the server sends it to the client.
"""

import logging
from collections.abc import Callable
from functools import cached_property, partial
from hashlib import sha256
from typing import Any, Final, Protocol, TypeVar

import anyio
import anyio.to_thread
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ContentBlock,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp_types import Tool as ListedTool
from mcp_types.version import is_version_at_least

from ..core.errors import ChangedMeanwhile, PalaverError
from .toolset import (
    REPORTER,
    CallProgress,
    DeletionDeclined,
    Effect,
    ServedTools,
    ServerConfig,
    Tool,
    ToolReply,
    Toolset,
)

_REPEATS_CALLS_SINCE: Final = "2026-07-28"
"""First protocol version in which the client repeats a call with the answers."""
_SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {}}
"""Schema of the form without fields: the user only accepts or declines."""


def can_ask(context: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client can show a question as a form.

    A client that declares elicitation without a mode supports forms.
    """
    capabilities = context.session.client_capabilities
    elicitation = capabilities.elicitation if capabilities else None
    return elicitation is not None and (elicitation.form is not None or elicitation.url is None)


async def ask(
    context: ServerRequestContext[Any, Any], params: CallToolRequestParams, question: str
) -> InputRequiredResult | None:
    """Ask the user to confirm a deletion.

    Return the result that makes the client show the question, or None if the user has accepted.

    Raises:
        DeletionDeclined: The user declined, or closed the question.
    """
    form = ElicitRequestFormParams(message=question, requested_schema=_SCHEMA)
    if is_version_at_least(context.protocol_version, _REPEATS_CALLS_SINCE):
        key = f"confirm-{sha256((params.name + question).encode()).hexdigest()[:16]}"
        answer = (params.input_responses or {}).get(key)
        if not isinstance(answer, ElicitResult):
            return InputRequiredResult(input_requests={key: ElicitRequest(params=form)})
    else:
        answer = await context.session.elicit_form(question, _SCHEMA, context.request_id)
    if answer.action != "accept":
        raise DeletionDeclined
    return None


STRUCTURED_SINCE: Final = "2025-06-18"
"""First protocol version with structured content."""
_PROGRESS_SECONDS: Final = 1.0
"""Seconds between two progress notifications of a call."""

Context = ServerRequestContext[Any, Any]
Result = TypeVar("Result")


class Contexts(Protocol):
    """Contexts in which tools run."""

    async def run(self, toolset: Toolset, function: Callable[[Any], Result], /) -> Result:
        """Call a function with the toolset's context in a worker thread, and return the result."""
        ...


class ToolContexts:
    """Contexts of the toolsets of this machine. Each is opened on first use. Only one thread at a time uses them."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self._opened: dict[str, Any] = {}
        self._one_at_a_time = anyio.CapacityLimiter(1)

    async def run(self, toolset: Toolset, function: Callable[[Any], Result]) -> Result:
        """See `Contexts.run`."""
        return await anyio.to_thread.run_sync(partial(self._run, toolset, function), limiter=self._one_at_a_time)

    def _run(self, toolset: Toolset, function: Callable[[Any], Result]) -> Result:
        if toolset.name not in self._opened:
            self._opened[toolset.name] = toolset.open(self._config)
        return function(self._opened[toolset.name])


class ToolCalls:
    """Handlers of the requests that list and call tools."""

    def __init__(
        self, served: ServedTools, contexts: Contexts, *, online: bool = False, read_only: bool = False
    ) -> None:
        """Serve tools. `online` is true if a language model is configured to judge memories."""
        self._served, self._contexts = served, contexts
        self._online, self._read_only = online, read_only

    async def list_tools(self, _context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        """Return all tools, in the order of their toolsets."""
        refuse_cursor(params)
        return ListToolsResult(tools=self._tools)

    @cached_property
    def _tools(self) -> list[ListedTool]:
        """All tools as clients list them. Deriving the schemas of 28 tools takes 70 ms, so it is done once."""
        return [
            _listed(name, tool, online=self._online, read_only=self._read_only)
            for name, (_, tool) in self._served.tools.items()
        ]

    async def call_tool(self, context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        """Return the reply of a tool, or the question that the user has to answer first."""
        if params.name not in self._served.tools:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {params.name}. Tools: {', '.join(self._served.tools)}.")
        toolset, tool = self._served.tools[params.name]
        try:
            question = await self._confirmed(context, params, toolset, tool)
        except PalaverError as error:
            return _result(toolset.to_error_reply(error), context.protocol_version, failed=True)
        return question or await self._reply(context, params, toolset, tool)

    async def _confirmed(
        self, context: Context, params: CallToolRequestParams, toolset: Toolset, tool: Tool
    ) -> InputRequiredResult | None:
        """Return the question to the user, or None if the user accepted, need not be asked or cannot be asked."""
        if tool.question is None or self._read_only or not can_ask(context):
            return None
        arguments = params.arguments or {}
        prepare = partial(self._contexts.run, toolset, lambda opened: tool.question_for(opened, arguments))
        question = await prepare()
        if not question:
            return None
        asked = await ask(context, params, question)
        if asked is None and question != await prepare():
            raise ChangedMeanwhile
        return asked

    async def _reply(
        self, context: Context, params: CallToolRequestParams, toolset: Toolset, tool: Tool
    ) -> CallToolResult:
        """Run a tool, and report its progress every second to a client that asked for it."""
        progress, result = CallProgress(), None
        token = REPORTER.set(progress)
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(_report, context, progress)
                result = await self._run(context, params.arguments or {}, toolset, tool)
                group.cancel_scope.cancel()
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None  # Only the tool can fail, because reporting suppresses its failures.
        finally:
            REPORTER.reset(token)
        assert result is not None
        return result

    async def _run(
        self, context: Context, arguments: dict[str, object], toolset: Toolset, tool: Tool
    ) -> CallToolResult:
        try:
            reply = await self._contexts.run(
                toolset, lambda opened: tool.call(opened, arguments, read_only=self._read_only)
            )
        except PalaverError as error:
            return _result(toolset.to_error_reply(error), context.protocol_version, failed=True)
        return _result(reply, context.protocol_version)


def refuse_cursor(params: PaginatedRequestParams | None) -> None:
    """Raise `MCPError` for a request with a page cursor, because every list is a single page."""
    if params is not None and params.cursor is not None:
        raise MCPError(INVALID_PARAMS, "Invalid cursor. The list is a single page: leave the cursor out.")


async def _report(context: Context, progress: CallProgress) -> None:
    """Send a progress notification every second: the seconds since the start of the call, and its latest stage.

    Nothing is sent if the request contained no progress token.
    """
    start = anyio.current_time()
    while True:
        await anyio.sleep(_PROGRESS_SECONDS)
        try:
            await context.session.report_progress(
                round(anyio.current_time() - start, 1), message=progress.message or None
            )
        except Exception:  # Keep the call's reply: the tool may have deleted something.
            logging.getLogger(__name__).debug("the progress of a call cannot be reported", exc_info=True)
            return


def _listed(name: str, tool: Tool, *, online: bool, read_only: bool) -> ListedTool:
    """Return a tool as clients list it. `online` is true if a language model is configured to judge memories."""
    reads = tool.effect is Effect.READS or (read_only and tool.effect is Effect.RECORDS)
    destroys = tool.effect is Effect.DESTROYS
    return ListedTool(
        name=name,
        description=tool.description,
        input_schema=tool.schema,
        output_schema=tool.output_schema,
        annotations=ToolAnnotations(
            read_only_hint=reads,
            destructive_hint=None if reads else destroys,
            open_world_hint=online and tool.judges,
        ),
    )


def _result(reply: ToolReply, protocol: str, *, failed: bool = False) -> CallToolResult:
    """Return the reply as text, and also as structured content if it is JSON and the protocol version supports this.

    A failed call has no structured content. The client of the TypeScript SDK would validate it against the output
    schema.
    """
    has_data = reply.data is not None and not failed and is_version_at_least(protocol, STRUCTURED_SINCE)
    structured = dict(reply.data or {}) if has_data else None
    content: list[ContentBlock] = [TextContent(type="text", text=reply.text)]
    return CallToolResult(content=content, structured_content=structured, is_error=failed)
