"""Handlers of MCP requests for resources, prompts and completions, served together with the conversation toolset."""

from collections.abc import Callable
from typing import Final, TypeVar

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    PromptMessage,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextContent,
    TextResourceContents,
)
from mcp_types.version import is_version_at_least

from ..core.errors import InvalidInput, PalaverError
from .archive_resources import (
    MARKDOWN,
    OBSERVATION,
    SESSION,
    TEMPLATES,
    latest_sessions,
    list_resources,
    read_resource,
)
from .conversation_tools import ConversationContext
from .session_watch import SessionWatch
from .tool_calls import Context, ToolContexts, refuse_cursor
from .toolset import Toolset
from .workflow_prompts import PROMPTS, completions

_SUBSCRIPTIONS_SINCE: Final = "2026-07-28"
"""First protocol version in which clients subscribe to list changes. Older clients are notified without a
subscription."""
_COMPLETIONS_MAX: Final = 100
"""Maximum number of values in a completion, as MCP requires."""
_NOT_FOUND: Final = -32002
"""Error code for an unknown resource, for clients older than `_SUBSCRIPTIONS_SINCE`. Others get INVALID_PARAMS."""

Result = TypeVar("Result")


class ArchiveHandlers:
    """Handlers of the requests for resources, prompts and completions."""

    def __init__(self, toolset: Toolset, contexts: ToolContexts) -> None:
        self._toolset, self._contexts = toolset, contexts
        self.watch = SessionWatch(self._addresses)

    async def list_resources(self, context: Context, params: PaginatedRequestParams | None) -> ListResourcesResult:
        """Return the latest sessions, newest first. The list is empty if nothing is archived."""
        refuse_cursor(params)
        try:
            resources = list_resources(await self._run(latest_sessions))
        except PalaverError:
            resources = []  # tools report the problem with its remedy
        notify = not is_version_at_least(context.protocol_version, _SUBSCRIPTIONS_SINCE)
        self.watch.listed(frozenset(each.uri for each in resources), context, notify=notify)
        return ListResourcesResult(resources=resources)

    async def list_templates(
        self, _context: Context, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        """Return the URI templates of observations and sessions."""
        refuse_cursor(params)
        return ListResourceTemplatesResult(resource_templates=TEMPLATES)

    async def read_resource(self, context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
        """Return an observation or a session as Markdown."""
        try:
            text = await self._run(lambda conversation: read_resource(conversation, params.uri))
        except PalaverError as error:
            current = is_version_at_least(context.protocol_version, _SUBSCRIPTIONS_SINCE)
            unknown = INVALID_PARAMS if current else _NOT_FOUND
            raise _mcp_error(error, unknown, {"uri": params.uri}) from None
        return ReadResourceResult(contents=[TextResourceContents(uri=params.uri, mime_type=MARKDOWN, text=text)])

    async def list_prompts(self, _context: Context, params: PaginatedRequestParams | None) -> ListPromptsResult:
        """Return the name, description and arguments of every prompt."""
        refuse_cursor(params)
        return ListPromptsResult(prompts=[each.listed for each in PROMPTS.values()])

    async def get_prompt(self, _context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        """Return the text of a prompt, which contains the archived entries that match its arguments."""
        prompt = PROMPTS.get(params.name)
        if prompt is None:
            raise MCPError(INVALID_PARAMS, f"Unknown prompt: {params.name[:100]}. Prompts: {', '.join(PROMPTS)}.")
        try:
            text = await self._run(lambda conversation: prompt.text(conversation, params.arguments or {}))
        except PalaverError as error:
            raise _mcp_error(error, INVALID_PARAMS) from None
        message = PromptMessage(role="user", content=TextContent(type="text", text=text))
        return GetPromptResult(description=prompt.listed.description, messages=[message])

    async def complete(self, _context: Context, params: CompleteRequestParams) -> CompleteResult:
        """Return the project names or session IDs that begin with the typed text."""
        argument = _argument(params)
        try:
            values = await self._run(lambda conversation: completions(conversation, argument, params.argument.value))
        except PalaverError as error:
            raise _mcp_error(error, INVALID_PARAMS) from None
        shown = values[:_COMPLETIONS_MAX]
        return CompleteResult(completion=Completion(values=shown, total=len(values), has_more=shown != values))

    async def listen(self, context: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Serve a subscription to changes of the list of resources."""
        return await self.watch.listen(context, params)

    async def _addresses(self) -> frozenset[str]:
        return frozenset(each.uri for each in list_resources(await self._run(latest_sessions)))

    async def _run(self, function: Callable[[ConversationContext], Result]) -> Result:
        return await self._contexts.run(self._toolset, function)


def _argument(params: CompleteRequestParams) -> str:
    """Return what to complete: the name of a prompt's argument, or `session` for the ID of a session.

    The text is empty for the ID of an observation, which has no completions.

    Raises:
        MCPError: The prompt, the template or the argument is unknown.
    """
    name = params.argument.name
    if isinstance(params.ref, PromptReference):
        prompt = PROMPTS.get(params.ref.name)
        if prompt is not None and name in [each.name for each in prompt.listed.arguments or []]:
            return name
    elif name == "id" and params.ref.uri in {OBSERVATION, SESSION}:
        return "session" if params.ref.uri == SESSION else ""
    raise MCPError(INVALID_PARAMS, "Unknown prompt, template or argument. List the prompts and templates first.")


def _mcp_error(error: PalaverError, invalid: int, data: dict[str, str] | None = None) -> MCPError:
    """Convert an error to an MCP error. `invalid` is the error code if the client can correct the request."""
    code = invalid if isinstance(error, InvalidInput) else INTERNAL_ERROR
    return MCPError(code, error.full_message, data)
