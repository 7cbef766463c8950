"""MCP resources and prompts of the archive: latest sessions, observations by URI, completions and notifications.

Only the ID in a URI is passed to the archive, which looks it up and never uses it as a path.

Clients are notified when the list of the latest sessions changes: clients of older protocol versions after they
listed the resources, newer clients after they subscribed.
"""

import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

import anyio
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Annotations,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    TextContent,
    TextResourceContents,
)
from mcp_types.version import is_version_at_least
from msgspec import Struct
from msgspec.structs import replace

from ..core.conversation import show_instant
from ..core.errors import InvalidInput, PalaverError, UnknownIds, UnknownProject
from ..core.ids import canonical
from ..core.query import LIMIT_MAX, Query
from ..core.results import Hit
from ..core.text import is_one_word
from ..templates.quote import brief, inert
from .conversation_tools import ConversationContext
from .tool_calls import Context, ToolContexts, refuse_cursor
from .toolset import Toolset

SECONDS: Final = 10.0
"""Seconds between two checks of the archive."""
_CLIENTS_MAX: Final = 100
"""Maximum number of clients that are notified without a subscription. Above it, the oldest client is dropped."""


class SessionWatch:
    """Watcher of the latest sessions. It starts when a client lists resources or subscribes to their list."""

    def __init__(self, addresses: Callable[[], Awaitable[frozenset[str]]], seconds: float = SECONDS) -> None:
        self._addresses, self._seconds = addresses, seconds
        self._known: frozenset[str] | None = None
        self._clients: dict[str, ServerSession] = {}
        self._bus = InMemorySubscriptionBus()
        self._listen = ListenHandler(self._bus)
        self._wanted = anyio.Event()

    def listed(self, addresses: frozenset[str], context: ServerRequestContext[Any, Any], *, notify: bool) -> None:
        """Record the resource URIs that a client received. With `notify`, notify this client of later changes."""
        if self._known is None:
            self._known = addresses
        if notify:
            headers = getattr(context.request, "headers", {})
            client = headers.get("mcp-session-id", "")
            self._clients.pop(client, None)
            self._clients[client] = context.session
            while len(self._clients) > _CLIENTS_MAX:
                del self._clients[next(iter(self._clients))]
            self._wanted.set()

    async def listen(
        self, context: ServerRequestContext[Any, Any], params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Serve a subscription to changes of the resource list. Subscriptions to other kinds of changes are ignored."""
        only = SubscriptionFilter(resources_list_changed=params.notifications.resources_list_changed)
        self._wanted.set()
        return await self._listen(context, params.model_copy(update={"notifications": only}))

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._wanted.wait()
        while True:
            await self._look()
            await anyio.sleep(self._seconds)

    async def _look(self) -> None:
        try:
            addresses = await self._addresses()
        except (PalaverError, OSError):  # The next request of a client reports the problem.
            logging.getLogger(__name__).debug("the latest sessions cannot be read", exc_info=True)
            return
        changed, self._known = self._known is not None and addresses != self._known, addresses
        if changed:
            await self._bus.publish(ResourcesListChanged())
            for client in [*self._clients.values()]:
                await client.send_resource_list_changed()  # The SDK drops notifications to clients that have gone.


OBSERVATION: Final = "palaver://observation/{id}"
SESSION: Final = "palaver://session/{id}"
MARKDOWN: Final = "text/markdown"

_ADDRESS: Final = re.compile(r"palaver://(observation|session)/([^/?#]{1,300})", re.IGNORECASE)
_TITLE, _SHOWN = 30, 60
"""Maximum tokens of a title in the list, and of an unknown address or ID in an error."""

TEMPLATES: Final = [
    ResourceTemplate(
        name="observation",
        title="Observation",
        uri_template=OBSERVATION,
        description="One thing learned in a conversation, with the lines that prove it. IDs come from search: obs-24.",
        mime_type=MARKDOWN,
    ),
    ResourceTemplate(
        name="session",
        title="Session",
        uri_template=SESSION,
        description="Summary and observations of a session. The first characters of its ID are enough.",
        mime_type=MARKDOWN,
    ),
]


def latest_sessions(conversation: ConversationContext) -> tuple[Hit, ...]:
    """Return the latest sessions, newest first."""
    return conversation.index.find(Query.newest(by="session", limit=LIMIT_MAX), snippets=False).hits


def session_address(session: Hit) -> str:
    """Return the URI of a session, such as `palaver://session/0b6f2c1d`."""
    return SESSION.replace("{id}", quote(session.session_id, safe=""))


def list_resources(sessions: Iterable[Hit]) -> list[Resource]:
    """Return one resource for each session, in the given order. Sessions that share an ID are left out."""
    resources = [*map(_resource, sessions)]
    uses = Counter(resource.uri for resource in resources)
    return [resource for resource in resources if uses[resource.uri] == 1]


def read_resource(conversation: ConversationContext, address: str) -> str:
    """Return the observation or session at a URI as Markdown, in the format of `get_observations`.

    Raises:
        InvalidInput: The address names no observation or session.
    """
    parts = _ADDRESS.fullmatch(address)
    if parts is None:
        raise InvalidInput(
            f"Unknown resource: {brief(address, _SHOWN)}", hint=f"Addresses have the form {OBSERVATION} or {SESSION}."
        )
    kind, name = parts[1].lower(), unquote(parts[2])
    if bool(canonical(name)) is not (kind == "observation"):
        raise InvalidInput(f"Not the ID of {_ARTICLES[kind]}: {brief(name, _SHOWN)}", hint=_HINTS[kind])
    try:
        details = conversation.index.details([name])
    except UnknownIds as error:
        raise InvalidInput(f"Unknown {kind}: {brief(name, _SHOWN)}", hint=error.hint or _HINTS[kind]) from None
    return conversation.renderer.observations(details)


_ARTICLES: Final = {"observation": "an observation", "session": "a session"}
_HINTS: Final = {"observation": "Take IDs from search results.", "session": "resources/list has the latest sessions."}


def _resource(session: Hit) -> Resource:
    return Resource(
        uri=session_address(session),
        name=session.short_session_id or session.session_id,
        title=brief(f"{session.project}: {session.session_title or session.title}", _TITLE),
        mime_type=MARKDOWN,
        annotations=None if session.at is None else Annotations(last_modified=show_instant(session.at)),
    )


_HITS: Final = 8
"""Number of search results in the prompt that recalls a topic."""
_SHOWN_NAME: Final = 60
"""Maximum tokens of an unknown name in an error."""
_PROJECTS: Final = 5
"""Maximum number of projects in an error."""
_SESSION_ID: Final = "Use a session ID, or at least its first 4 characters, such as 0b6f in search results."


class WorkflowPrompt(Struct, frozen=True):
    """Prompt of the server. `fill` takes the values of the listed arguments, in their order, and returns the text."""

    listed: Prompt
    fill: Callable[..., str]

    def text(self, conversation: ConversationContext, values: Mapping[str, str]) -> str:
        """Return the text of the prompt.

        Raises:
            InvalidInput: An argument is missing, unknown or invalid.
        """
        arguments = self.listed.arguments or []
        names = [argument.name for argument in arguments]
        missing = [
            argument.name for argument in arguments if argument.required and not values.get(argument.name, "").strip()
        ]
        if unknown := [name for name in values if name not in names]:
            raise InvalidInput(f"Unknown argument: {brief(unknown[0], _SHOWN_NAME)}", hint=f"Use: {', '.join(names)}.")
        if missing:
            raise InvalidInput(f"Missing argument: {missing[0]}", hint=f"The prompt needs {missing[0]}.")
        return self.fill(conversation, *(values.get(name, "").strip() for name in names))


def _recall(conversation: ConversationContext, topic: str, project: str) -> str:
    query = Query.parse(topic, limit=_HITS, projects=[project] if project else ())
    asked = replace(query, here=conversation.here) if query.prefers_project else query
    try:
        results = conversation.index.find(asked, snippets=False)
    except UnknownProject as error:
        # An error is not marked as quoted text, so it contains only names that cannot be sentences.
        latest = [session.project for session in latest_sessions(conversation)]
        names = [name for name in dict.fromkeys([*error.near, *latest]) if is_one_word(name)][:_PROJECTS]
        hint = f"Projects: {', '.join(names)}." if names else "Leave out the project."
        raise InvalidInput(f"Unknown project: {brief(project, _SHOWN_NAME)}", hint=hint) from None
    page = conversation.renderer.search(results)
    return conversation.renderer.fill("recall_prompt", topic=topic, project=project, results=page)


def _review(conversation: ConversationContext, session: str) -> str:
    try:
        details = conversation.index.details([session])
    except UnknownIds:
        raise InvalidInput(f"Unknown session: {brief(session, _SHOWN_NAME)}", hint=_SESSION_ID) from None
    page = conversation.renderer.observations(details)
    return conversation.renderer.fill("review_prompt", path=details[0].path, page=page)


PROMPTS: Final = {
    prompt.listed.name: prompt
    for prompt in (
        WorkflowPrompt(
            Prompt(
                name="recall",
                title="Recall a topic",
                description="What past sessions say about a topic: decisions, fixes and open questions, with sources.",
                arguments=[
                    PromptArgument(name="topic", description="Question or keywords", required=True),
                    PromptArgument(name="project", description="Only this project", required=False),
                ],
            ),
            _recall,
        ),
        WorkflowPrompt(
            Prompt(
                name="review_session",
                title="Review a session",
                description="What was asked, decided, repaired and left open in a session, and what to do differently.",
                arguments=[
                    PromptArgument(name="session", description="Session ID, or its first characters", required=True)
                ],
            ),
            _review,
        ),
    )
}
"""Prompts by name, in the order in which clients list them."""


def completions(conversation: ConversationContext, argument: str, typed: str) -> list[str]:
    """Return the projects, or the IDs of the latest sessions, that begin with the typed text, the latest first.

    Other arguments have no completions.
    """
    match argument:
        case "project":
            choices = conversation.project_names()
        case "session":
            choices = [session.session_id for session in latest_sessions(conversation)]
        case _:
            choices = []
    names = map(inert, dict.fromkeys(choices))
    return [name for name in names if name and name.casefold().startswith(typed.casefold())]


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
        self.watch.listed(frozenset(resource.uri for resource in resources), context, notify=notify)
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
        return ListPromptsResult(prompts=[prompt.listed for prompt in PROMPTS.values()])

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
        first = values[:_COMPLETIONS_MAX]
        return CompleteResult(completion=Completion(values=first, total=len(values), has_more=first != values))

    async def listen(self, context: Context, params: SubscriptionsListenRequestParams) -> SubscriptionsListenResult:
        """Serve a subscription to changes of the list of resources."""
        return await self.watch.listen(context, params)

    async def _addresses(self) -> frozenset[str]:
        return frozenset(resource.uri for resource in list_resources(await self._run(latest_sessions)))

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
        if prompt is not None and name in [argument.name for argument in prompt.listed.arguments or []]:
            return name
    elif name == "id" and params.ref.uri in {OBSERVATION, SESSION}:
        return "session" if params.ref.uri == SESSION else ""
    raise MCPError(INVALID_PARAMS, "Unknown prompt, template or argument. List the prompts and templates first.")


def _mcp_error(error: PalaverError, invalid: int, data: dict[str, str] | None = None) -> MCPError:
    """Convert an error to an MCP error. `invalid` is the error code if the client can correct the request."""
    code = invalid if isinstance(error, InvalidInput) else INTERNAL_ERROR
    return MCPError(code, error.full_message, data)
